//! Permissions: one bit each, and what granting it gives.

use super::types::enumeration;
use cloudphone_spec::model::{Contract, Member};
use proc_macro2::TokenStream;
use quote::quote;

pub(crate) fn emit(contract: &Contract, rt: &syn::Path) -> TokenStream {
    let members: Vec<_> =
        contract.permissions.iter().map(|p| Member { name: p.name.clone(), doc: p.doc.clone() }).collect();
    let declaration = enumeration("Permission", "What an application may be granted.", &members);
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
    let count = members.len();
    quote! {
        #declaration

        static PERMISSIONS: [#rt::catalogue::Permission; #count] = [#(#table),*];
    }
}
