//! What generated code is made of besides calls: what every type of one kind has, written once.
//!
//! Each macro is given a type that stands in the contract's module, and what the contract says of it.

pub use crate::{
    __toolwarrant_integer as integer, __toolwarrant_names as names, __toolwarrant_string as string,
    __toolwarrant_values as values,
};
pub use serde;

/// An enum whose values know their names on the wire.
#[doc(hidden)]
#[macro_export]
macro_rules! __toolwarrant_names {
    ($name:ident { $($variant:ident = $wire:literal),* $(,)? }) => {
        impl $name {
            /// Every value, in the order of the contract.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $wire,)* }
            }
        }
    };
}

/// An enum whose values are read from arguments and written to results.
#[doc(hidden)]
#[macro_export]
macro_rules! __toolwarrant_values {
    ($name:ident { $($variant:ident = $wire:literal),* $(,)? }) => {
        $crate::__toolwarrant_names!($name { $($variant = $wire),* });

        impl $crate::args::Argument for $name {
            fn read(json: &str) -> Option<Self> {
                $crate::args::read_name(json, Self::ALL, Self::as_str)
            }
            fn allowed() -> std::borrow::Cow<'static, str> {
                $crate::args::one_of(Self::ALL, Self::as_str)
            }
        }

        impl $crate::generated::serde::Serialize for $name {
            fn serialize<S>(&self, to: S) -> Result<S::Ok, S::Error>
            where
                S: $crate::generated::serde::Serializer,
            {
                to.serialize_str(self.as_str())
            }
        }
    };
}

/// A newtype of an integer.
#[doc(hidden)]
#[macro_export]
macro_rules! __toolwarrant_integer {
    ($name:ident, $range:expr, $allowed:literal) => {
        impl $name {
            /// Takes a number that the contract admits.
            ///
            /// # Errors
            /// What is allowed, if it does not.
            pub fn new(number: i64) -> Result<Self, $crate::args::NotAllowed> {
                $crate::args::integer(number, $range, $allowed).map(Self)
            }

            /// The number.
            #[must_use]
            pub const fn get(self) -> i64 {
                self.0
            }
        }

        impl $crate::args::Argument for $name {
            fn read(json: &str) -> Option<Self> {
                Self::new($crate::args::read_integer(json)?).ok()
            }
            fn allowed() -> std::borrow::Cow<'static, str> {
                $allowed.into()
            }
        }

        impl $crate::generated::serde::Serialize for $name {
            fn serialize<S>(&self, to: S) -> Result<S::Ok, S::Error>
            where
                S: $crate::generated::serde::Serializer,
            {
                to.serialize_i64(self.0)
            }
        }
    };
}

/// A newtype of text, whose rule stands in its `StringType`.
#[doc(hidden)]
#[macro_export]
macro_rules! __toolwarrant_string {
    ($name:ident) => {
        impl $name {
            /// Takes text that the contract admits.
            ///
            /// # Errors
            /// What is allowed, if it does not.
            pub fn new(text: &str) -> Result<Self, $crate::args::NotAllowed> {
                $crate::args::string::<Self>(text).map(Self)
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl $crate::args::Argument for $name {
            fn read(json: &str) -> Option<Self> {
                Self::new(&$crate::args::read_text(json)?).ok()
            }
            fn allowed() -> std::borrow::Cow<'static, str> {
                <Self as $crate::args::StringType>::ALLOWED.into()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl $crate::generated::serde::Serialize for $name {
            fn serialize<S>(&self, to: S) -> Result<S::Ok, S::Error>
            where
                S: $crate::generated::serde::Serializer,
            {
                to.serialize_str(&self.0)
            }
        }
    };
}
