//! Named types: newtypes, enums and structs, each with the schema that the contract gives it.

use crate::tokens::{camel, doc, field_ty, ident};
use cloudphone_spec::model::{Contract, Field, Kind, Member, NamedType, StringRule, Type};
use cloudphone_spec::{MAX_INTEGER, UNTRUSTED_MAX_CHARS, allowed, type_schema};
use proc_macro2::TokenStream;
use quote::quote;
use std::sync::Arc;

pub(crate) fn emit(contract: &Contract, rt: &syn::Path) -> TokenStream {
    let types = contract.types.iter().map(|ty| named(ty, rt));
    let probes = (!contract.probes.is_empty()).then(|| {
        let all = contract.probes.iter().map(|probe| Member { name: probe.name.clone(), doc: probe.doc.clone() });
        enumeration("Probe", "What can be read to verify a task.", &all.collect::<Vec<_>>())
    });
    quote! {
        const _: () = {
            // The schemas promise what the runtime keeps.
            ::core::assert!(#rt::text::UNTRUSTED_MAX_CHARS == #UNTRUSTED_MAX_CHARS);
            ::core::assert!(#rt::args::MAX_INTEGER == #MAX_INTEGER);
        };
        #(#types)*
        #probes
    }
}

fn named(ty: &Arc<NamedType>, rt: &syn::Path) -> TokenStream {
    let NamedType { name, doc: text, kind } = &**ty;
    let schema = schema(name, &type_schema(ty).to_string(), rt);
    let body = match kind {
        Kind::String(rule) => string(ty, rule, rt),
        Kind::Integer { min, max } => integer(ty, *min, *max, rt),
        Kind::Enum(members) => {
            let (declaration, name, argument) = (enumeration(name, text, members), ident(name), argument(ty));
            quote! {
                #declaration
                impl #rt::args::Argument for #name {
                    fn read(json: &str) -> ::core::option::Option<Self> {
                        #rt::args::read_name(json, Self::ALL, Self::as_str)
                    }
                    #argument
                }
                impl #rt::generated::serde::Serialize for #name {
                    fn serialize<S: #rt::generated::serde::Serializer>(&self, to: S) -> ::core::result::Result<S::Ok, S::Error> {
                        to.serialize_str(self.as_str())
                    }
                }
            }
        }
        Kind::Object(fields) => object(name, text, fields, rt),
    };
    quote!(#body #schema)
}

fn string(ty: &Arc<NamedType>, StringRule { min, max, prefix, charset }: &StringRule, rt: &syn::Path) -> TokenStream {
    let (name, text, allows) = (ident(&ty.name), doc(&ty.doc), allows(ty));
    let charset = charset.iter().map(|(from, to)| {
        let (from, to) = (*from as u8, *to as u8);
        quote!((#from, #to))
    });
    let argument = argument(ty);
    quote! {
        #text
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct #name(::std::sync::Arc<str>);

        impl #name {
            /// Takes text that the contract admits.
            ///
            /// # Errors
            /// What is allowed, if it does not.
            pub fn new(text: &str) -> ::core::result::Result<Self, #rt::args::NotAllowed> {
                #rt::args::string(text)
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl #rt::args::StringType for #name {
            const RULE: #rt::args::StringRule =
                #rt::args::StringRule { min: #min, max: #max, prefix: #prefix, charset: &[#(#charset),*] };
            const ALLOWED: &'static str = #allows;
            fn wrap(text: ::std::sync::Arc<str>) -> Self {
                Self(text)
            }
        }

        impl #rt::args::Argument for #name {
            fn read(json: &str) -> ::core::option::Option<Self> {
                Self::new(&#rt::args::read_text(json)?).ok()
            }
            #argument
        }

        impl ::core::fmt::Display for #name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl #rt::generated::serde::Serialize for #name {
            fn serialize<S: #rt::generated::serde::Serializer>(&self, to: S) -> ::core::result::Result<S::Ok, S::Error> {
                to.serialize_str(&self.0)
            }
        }
    }
}

fn integer(ty: &Arc<NamedType>, min: i64, max: i64, rt: &syn::Path) -> TokenStream {
    let (name, text, allows) = (ident(&ty.name), doc(&ty.doc), allows(ty));
    let argument = argument(ty);
    quote! {
        #text
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct #name(i64);

        impl #name {
            /// Takes a number that the contract admits.
            ///
            /// # Errors
            /// What is allowed, if it does not.
            pub fn new(number: i64) -> ::core::result::Result<Self, #rt::args::NotAllowed> {
                #rt::args::integer(number, #min..=#max, #allows).map(Self)
            }

            /// The number.
            #[must_use]
            pub const fn get(self) -> i64 {
                self.0
            }
        }

        impl #rt::args::Argument for #name {
            fn read(json: &str) -> ::core::option::Option<Self> {
                Self::new(#rt::args::read_integer(json)?).ok()
            }
            #argument
        }

        impl #rt::generated::serde::Serialize for #name {
            fn serialize<S: #rt::generated::serde::Serializer>(&self, to: S) -> ::core::result::Result<S::Ok, S::Error> {
                to.serialize_i64(self.0)
            }
        }
    }
}

/// An enum whose values know their wire names.
pub(crate) fn enumeration(name: &str, text: &str, members: &[Member]) -> TokenStream {
    let (name, text) = (ident(name), doc(text));
    let variants: Vec<_> = members.iter().map(|member| camel(&member.name)).collect();
    let docs = members.iter().map(|member| doc(&member.doc));
    let wire = members.iter().map(|member| &member.name);
    quote! {
        #text
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum #name { #(#docs #variants,)* }

        impl #name {
            /// Every value, in the order of the contract.
            pub const ALL: &'static [Self] = &[#(Self::#variants),*];

            /// The name on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { #(Self::#variants => #wire,)* }
            }
        }
    }
}

fn object(name: &str, text: &str, fields: &[Field], rt: &syn::Path) -> TokenStream {
    let (name, text) = (ident(name), doc(text));
    let serde = quote!(#rt::generated::serde).to_string();
    let fields = fields.iter().map(|field| {
        let (name, text, ty) = (ident(&field.name), doc(&field.doc), field_ty(field, rt));
        quote!(#text pub #name: #ty)
    });
    quote! {
        #text
        #[derive(Clone, Debug, PartialEq, #rt::generated::serde::Serialize)]
        #[serde(crate = #serde)]
        pub struct #name { #(#fields,)* }
    }
}

/// The schema that the contract gives a type, for anything that speaks schemars.
pub(crate) fn schema(name: &str, json: &str, rt: &syn::Path) -> TokenStream {
    let ty = ident(name);
    quote! {
        impl #rt::generated::schemars::JsonSchema for #ty {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed(#name)
            }
            fn json_schema(_: &mut #rt::generated::schemars::SchemaGenerator) -> #rt::generated::schemars::Schema {
                #rt::generated::schema(#json)
            }
            fn inline_schema() -> bool {
                true
            }
        }
    }
}

fn argument(ty: &Arc<NamedType>) -> TokenStream {
    let allows = allows(ty);
    quote! {
        fn allowed() -> ::std::borrow::Cow<'static, str> {
            ::std::borrow::Cow::Borrowed(#allows)
        }
    }
}

fn allows(ty: &Arc<NamedType>) -> String {
    allowed(&Type::Named(Arc::clone(ty)))
}
