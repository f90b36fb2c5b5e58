//! Emits the bit of each permission, and all permissions that it grants. `types` emits the enum.

use crate::tokens::camel;
use proc_macro2::{Literal, TokenStream};
use quote::quote;
use toolwarrant_reader::model::Contract;

pub(crate) fn emit(contract: &Contract) -> TokenStream {
    let table = contract.permissions.iter().map(|permission| {
        let (name, variant, doc) = (&permission.name, camel(&permission.name), &permission.doc);
        let grants = permission.grants.iter().map(|granted| camel(&contract.permissions[*granted].name));
        quote! {
            rt::catalogue::PermissionDef {
                name: #name,
                doc: #doc,
                bit: Permission::#variant.bit(),
                grants: rt::catalogue::PermissionSet::NONE #(.and(Permission::#grants.bit()))*,
            }
        }
    });
    let count = Literal::usize_unsuffixed(contract.permissions.len());
    quote! {
        impl Permission {
            /// Returns the bit of this permission.
            #[must_use]
            pub const fn bit(self) -> rt::catalogue::PermissionSet {
                rt::catalogue::PermissionSet(1 << self as u64)
            }
        }

        static PERMISSIONS: [rt::catalogue::PermissionDef; #count] = [#(#table),*];
    }
}
