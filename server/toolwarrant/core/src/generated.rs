//! Macros for generated code, so that code that all types of one kind share is written once.

pub use crate::{
    __toolwarrant_integer as integer, __toolwarrant_names as names, __toolwarrant_string as string,
    __toolwarrant_values as values,
};
pub use serde;
pub use zeroize::Zeroize;

/// Gives an enum its values and their names on the wire.
#[doc(hidden)]
#[macro_export]
macro_rules! __toolwarrant_names {
    ($name:ident { $($variant:ident = $wire:literal),* $(,)? }) => {
        impl $name {
            /// Every value, in the order of the contract.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the name on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $wire,)* }
            }
        }
    };
}

/// Reads and writes an enum as well.
#[doc(hidden)]
#[macro_export]
macro_rules! __toolwarrant_values {
    ($name:ident { $($variant:ident = $wire:literal),* $(,)? }) => {
        $crate::__toolwarrant_names!($name { $($variant = $wire),* });

        impl $crate::args::Argument for $name {
            fn read(json: &str) -> Option<Self> {
                $crate::args::read_name(json, Self::ALL, Self::as_str)
            }
            fn describe_values() -> $crate::wording::Words {
                $crate::args::one_of(Self::ALL, Self::as_str)
            }
        }

        impl $crate::wording::Ours for $name {
            fn say(&self, words: &mut String) {
                words.push_str(self.as_str());
            }
        }

        impl $crate::reply::TargetIds for $name {}

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

/// Implements a newtype of an integer.
#[doc(hidden)]
#[macro_export]
macro_rules! __toolwarrant_integer {
    ($name:ident, $range:expr, $allowed:literal) => {
        impl $name {
            /// Checks a number against the contract.
            ///
            /// # Errors
            /// The contract does not admit it. The error says what it admits.
            pub fn new(number: i64) -> Result<Self, $crate::args::NotAllowed> {
                $crate::args::integer(number, $range, $allowed).map(Self)
            }

            /// Returns the number.
            #[must_use]
            pub const fn get(self) -> i64 {
                self.0
            }
        }

        impl $crate::args::Argument for $name {
            fn read(json: &str) -> Option<Self> {
                Self::new($crate::args::read_integer(json)?).ok()
            }
            fn describe_values() -> $crate::wording::Words {
                $allowed.into()
            }
        }

        impl $crate::wording::Ours for $name {
            fn say(&self, words: &mut String) {
                $crate::wording::Ours::say(&self.0, words);
            }
        }

        impl $crate::reply::TargetIds for $name {}

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

/// Implements a newtype of text, whose `StringType` holds the rule.
#[doc(hidden)]
#[macro_export]
macro_rules! __toolwarrant_string {
    ($name:ident) => {
        impl $name {
            /// Checks a text against the contract.
            ///
            /// # Errors
            /// The contract does not admit it. The error says what it admits.
            pub fn new(text: &str) -> Result<Self, $crate::args::NotAllowed> {
                $crate::args::string::<Self>(text).map(Self)
            }

            /// Returns the text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl $crate::args::Argument for $name {
            fn read(json: &str) -> Option<Self> {
                Self::new(&$crate::args::read_text(json)?).ok()
            }
            fn describe_values() -> $crate::wording::Words {
                <Self as $crate::args::StringType>::ALLOWED.into()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        /// Its text has the same order and hash.
        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        /// The last of its clones wipes the text.
        impl $crate::generated::Zeroize for $name {
            fn zeroize(&mut self) {
                if let Some(text) = std::sync::Arc::get_mut(&mut self.0) {
                    $crate::generated::Zeroize::zeroize(text);
                }
            }
        }

        impl $crate::wording::Ours for $name {
            fn say(&self, words: &mut String) {
                $crate::wording::say_value(&self.0, words);
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
