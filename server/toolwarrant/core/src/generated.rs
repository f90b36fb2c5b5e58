//! Macros for generated code, so that code that all types of one kind share is written once.

pub use crate::{
    __toolwarrant_altered as altered, __toolwarrant_integer as integer, __toolwarrant_names as names,
    __toolwarrant_number as number, __toolwarrant_object as object, __toolwarrant_string as string,
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
            fn read_value(json: &str, mistakes: &mut $crate::args::Mistakes) -> Option<Self> {
                $crate::args::note($crate::args::read_name(json, Self::ALL, Self::as_str), json, mistakes)
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
        impl $crate::text::Altered for $name {}

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
        $crate::__toolwarrant_quantity!(
            $name,
            i64,
            $crate::args::integer,
            $crate::args::read_integer,
            $range,
            $allowed
        );

        impl $crate::wording::Ours for $name {
            fn say(&self, words: &mut String) {
                $crate::wording::Ours::say(&self.0, words);
            }
        }
    };
}

/// Implements a newtype of a number.
#[doc(hidden)]
#[macro_export]
macro_rules! __toolwarrant_number {
    ($name:ident, $range:expr, $allowed:literal) => {
        $crate::__toolwarrant_quantity!($name, f64, $crate::args::number, $crate::args::read_number, $range, $allowed);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __toolwarrant_quantity {
    ($name:ident, $quantity:ty, $check:path, $read:path, $range:expr, $allowed:literal) => {
        impl $name {
            /// Checks a number against the contract.
            ///
            /// # Errors
            /// The contract does not admit it. The error says what it admits.
            pub fn new(number: $quantity) -> Result<Self, $crate::args::NotAllowed> {
                $check(number, $range, $allowed).map(Self)
            }

            /// Returns the number.
            #[must_use]
            pub const fn get(self) -> $quantity {
                self.0
            }
        }

        impl $crate::args::Argument for $name {
            fn read_value(json: &str, mistakes: &mut $crate::args::Mistakes) -> Option<Self> {
                $crate::args::note($read(json).and_then(|number| Self::new(number).ok()), json, mistakes)
            }
            fn describe_values() -> $crate::wording::Words {
                $allowed.into()
            }
        }

        impl $crate::reply::TargetIds for $name {}
        impl $crate::text::Altered for $name {}

        impl $crate::generated::serde::Serialize for $name {
            fn serialize<S>(&self, to: S) -> Result<S::Ok, S::Error>
            where
                S: $crate::generated::serde::Serializer,
            {
                $crate::generated::serde::Serialize::serialize(&self.0, to)
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
            const SHOWN: $crate::args::Shown = $crate::args::form_in_audit::<Self>();
            const MAY_BE_EMPTY: bool = <Self as $crate::args::StringType>::IS_TEXT;
            fn read_value(json: &str, mistakes: &mut $crate::args::Mistakes) -> Option<Self> {
                let text = $crate::args::read_text(json);
                $crate::args::note(text.and_then(|text| Self::new(&text).ok()), json, mistakes)
            }
            fn describe_values() -> $crate::wording::Words {
                <Self as $crate::args::StringType>::ALLOWED.into()
            }
        }

        impl $crate::text::Altered for $name {}

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

/// Implements an object of arguments, which also implements `Arguments`.
#[doc(hidden)]
#[macro_export]
macro_rules! __toolwarrant_object {
    ($name:ident) => {
        impl $crate::args::Argument for $name {
            const SHOWN: $crate::args::Shown = $crate::args::Shown::Digest;
            fn describe_values() -> $crate::wording::Words {
                "an object".into()
            }
            fn read_value(json: &str, mistakes: &mut $crate::args::Mistakes) -> Option<Self> {
                $crate::args::read_object(json, mistakes)
            }
        }
    };
}

/// Writes an object of a result, and counts in `altered` what its texts of others write out.
#[doc(hidden)]
#[macro_export]
macro_rules! __toolwarrant_altered {
    ($name:ident { $($field:ident = $wire:literal),* } $($text:ident)*) => {
        impl $crate::generated::serde::Serialize for $name {
            fn serialize<S>(&self, to: S) -> Result<S::Ok, S::Error>
            where
                S: $crate::generated::serde::Serializer,
            {
                use $crate::generated::serde::ser::SerializeMap;
                let altered = 0 $(+ $crate::text::Altered::count_altered(&self.$text))*;
                let mut object = to.serialize_map(None)?;
                $(object.serialize_entry($wire, &self.$field)?;)*
                if altered > 0 {
                    object.serialize_entry("altered", &altered)?;
                }
                object.end()
            }
        }
    };
}
