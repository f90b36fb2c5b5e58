//! Emits the sentences that answers consist of, and the numbers that handlers share with texts.

use crate::tokens::{doc, shout};
use proc_macro2::{Literal, TokenStream};
use quote::quote;
use toolwarrant_reader::model::Contract;
use toolwarrant_reader::{SentenceSpec, sentences};

pub(crate) fn emit(contract: &Contract) -> TokenStream {
    let texts = contract.texts.iter().map(|(name, text)| {
        let (name, docs, advice) = (shout(name), doc(text), advice(contract, text));
        quote!(#docs pub const #name: Advice = #advice;)
    });
    let numbers = contract.numbers.iter().map(|(name, number)| {
        let (docs, name, number) =
            (doc(&format!("`{name}` of the contract.")), shout(name), Literal::u32_unsuffixed(*number));
        quote!(#docs pub const #name: u32 = #number;)
    });
    let texts = (!contract.texts.is_empty()).then(|| {
        quote! {
            /// Sentences of the contract that handlers answer with.
            pub mod texts {
                use super::rt::advice::*;
                #(#texts)*
            }
        }
    });
    let numbers = (!contract.numbers.is_empty()).then(|| {
        quote! {
            /// Numbers of the contract that its texts contain.
            pub mod numbers { #(#numbers)* }
        }
    });
    quote!(#texts #numbers)
}

/// Expects `Advice` and `Sentence` in scope.
pub(crate) fn advice(contract: &Contract, text: &str) -> TokenStream {
    of(&sentences(contract, text))
}

pub(crate) fn of(sentences: &[SentenceSpec]) -> TokenStream {
    if sentences.is_empty() {
        return quote!(Advice::NONE);
    }
    let sentences = sentences.iter().map(|SentenceSpec { text, needs, any }| match (needs, any) {
        (0, 0) => quote!(Sentence::to_all(#text)),
        _ => {
            let [needs, any] = [needs, any].map(|set| Literal::u64_unsuffixed(*set));
            quote!(Sentence::new(#text, #needs, #any))
        }
    });
    quote!(Advice(&[#(#sentences),*]))
}
