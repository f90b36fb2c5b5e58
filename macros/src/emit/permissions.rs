//! Permissions: one bit each, and what granting it gives.

use super::types::enumeration;
use crate::tokens::{camel, ident};
use cloudphone_spec::model::{Contract, Member};
use proc_macro2::TokenStream;
use quote::quote;

pub(crate) fn emit(contract: &Contract, rt: &syn::Path) -> TokenStream {
    let members: Vec<_> =
        contract.permissions.iter().map(|p| Member { name: p.name.clone(), doc: p.doc.clone() }).collect();
    let declaration = enumeration("Permission", "What an application may be granted.", &members);
    let variants = members.iter().map(|member| camel(&member.name));
    let table = contract.permissions.iter().enumerate().map(|(n, permission)| {
        let (name, doc) = (&permission.name, &permission.doc);
        let bit = 1_u64 << n;
        let grants = permission.grants.iter().fold(0_u64, |set, n| set | 1 << n);
        quote! {
            #rt::catalogue::Permission {
                name: #name,
                doc: #doc,
                bit: #rt::catalogue::PermissionSet(#bit),
                grants: #rt::catalogue::PermissionSet(#grants),
            }
        }
    });
    let (count, positions) = (members.len(), 0..members.len());
    let set = ident("grants");
    quote! {
        #declaration

        impl Permission {
            /// What granting it gives: itself and all that it implies.
            #[must_use]
            pub const fn #set(self) -> #rt::catalogue::PermissionSet {
                match self { #(Self::#variants => PERMISSIONS[#positions].grants,)* }
            }
        }

        static PERMISSIONS: [#rt::catalogue::Permission; #count] = [#(#table),*];
    }
}
