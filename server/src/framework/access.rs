//! Who calls: applications, their keys, what they may do and see, and the proof that a request is theirs.
//!
//! A [`Caller`] comes from [`Access::authenticate`] alone. Whether it may use a tool is judged by the pipeline; who may call at
//! all is the [`registry`](super::registry)'s affair. No secret is kept, only a verifier of it. Start at [`Access`].

use super::catalogue::PermissionSet;
use super::limit::Window;
use crate::clock::Timestamp;
use crate::vault::{Digest, Vault};
use arc_swap::ArcSwap;
use axum::http::header::{AUTHORIZATION, AsHeaderName, HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};
use subtle::{Choice, ConstantTimeEq};

/// Secrets that a key can have at a time: the one in use and the one that takes over.
pub(super) const LIVE_SECRETS: usize = 2;

static KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");
static SECRET_HEADER: HeaderName = HeaderName::from_static("x-api-secret");

/// Every key, as requests are checked against it. Reading takes no lock: a change swaps in a whole new directory.
pub struct Access {
    directory: ArcSwap<Directory>,
    vault: Vault,
}

/// An application: what its keys share.
#[derive(Debug)]
pub struct Application {
    /// Its identifier in audit and storage.
    pub id: Box<str>,
    /// Its name for people.
    pub name: Box<str>,
    /// What it may do.
    pub permissions: PermissionSet,
    /// Which targets it may see.
    pub grants: Grants,
    /// What is left of its request budget; it outlives a change of all the rest.
    pub window: Arc<Window>,
    /// The result of `tools/list` for these permissions, once it has been asked for.
    pub(super) tools: OnceLock<Bytes>,
}

impl Application {
    /// An application with a budget.
    #[must_use]
    pub fn new(id: &str, name: &str, permissions: PermissionSet, grants: Grants, window: Arc<Window>) -> Self {
        Self { id: id.into(), name: name.into(), permissions, grants, window, tools: OnceLock::new() }
    }
}

/// The targets that an application may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grants {
    /// Every target, those to come included.
    All,
    /// Just these, by identifier.
    Set(BTreeSet<Box<str>>),
}

/// Who can call: applications, and the keys of each.
#[derive(Clone, Default)]
pub struct Directory {
    keys: HashMap<Arc<str>, Key>,
}

#[derive(Clone)]
struct Key {
    application: Arc<Application>,
    /// The latest first. All are compared each time, so that the time taken does not tell how many there are.
    live: [Digest; LIVE_SECRETS],
    expires_at: Option<Timestamp>,
}

impl Directory {
    /// Writes a key down with the verifiers of its live secrets, the latest first; one without any is gone.
    pub fn put_key(
        &mut self,
        id: &str,
        application: &Arc<Application>,
        verifiers: &[Digest],
        expires_at: Option<Timestamp>,
    ) {
        if verifiers.is_empty() {
            self.keys.remove(id);
            return;
        }
        let live = std::array::from_fn(|n| verifiers.get(n).copied().unwrap_or(VACANT));
        self.keys.insert(id.into(), Key { application: Arc::clone(application), live, expires_at });
    }

    /// Makes every key of that application one of the application as it is from now on.
    pub fn put_application(&mut self, application: &Arc<Application>) {
        for key in self.keys.values_mut().filter(|key| key.application.id == application.id) {
            key.application = Arc::clone(application);
        }
    }
}

/// Proof that a request came with a live secret of one of this application's keys.
#[derive(Debug, Clone)]
#[expect(clippy::manual_non_exhaustive, reason = "that attribute would keep out other crates, not other modules")]
pub struct Caller {
    /// Whose key it was.
    pub application: Arc<Application>,
    /// Which key it was.
    pub key_id: Arc<str>,
    /// Private, so that no one else can make one.
    _proof: (),
}

/// A refusal that says no more than this, whatever was missing, malformed, unknown, wrong or revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the credentials are missing, malformed or wrong")]
pub struct Unauthenticated;

impl Access {
    /// A directory of nobody. `vault` makes the verifiers.
    #[must_use]
    pub fn new(vault: Vault) -> Self {
        Self { directory: ArcSwap::default(), vault }
    }

    /// Swaps in a changed copy of the directory. Repeated where two changes meet, so `edit` may run more than once.
    pub fn change(&self, edit: impl Fn(&mut Directory)) {
        self.directory.rcu(|directory| {
            let mut directory = Directory::clone(directory);
            edit(&mut directory);
            directory
        });
    }

    /// Finds out who sent these headers.
    ///
    /// # Errors
    /// [`Unauthenticated`], after the same work for an unknown key as for a wrong secret.
    pub fn authenticate(&self, headers: &HeaderMap, now: Timestamp) -> Result<Caller, Unauthenticated> {
        let Credentials { key_id, secret } = Credentials::read(headers)?;
        let directory = self.directory.load();
        let known = directory.keys.get_key_value(key_id);
        let live = known.map_or(&[VACANT; LIVE_SECRETS], |(_, key)| &key.live);
        let shown = self.verifier(secret);
        let matches = live.iter().fold(Choice::from(0), |any, verifier| any | same(verifier, &shown));
        match known {
            Some((key_id, key)) if matches.into() && key.expires_at.is_none_or(|end| now < end) => {
                Ok(Caller { application: Arc::clone(&key.application), key_id: Arc::clone(key_id), _proof: () })
            }
            _ => Err(Unauthenticated),
        }
    }

    /// What proves a secret without telling it.
    pub(super) fn verifier(&self, secret: &str) -> Digest {
        self.vault.mac(&["secret", secret])
    }
}

impl Grants {
    /// Whether the target of that identifier may be seen.
    #[must_use]
    pub fn covers(&self, id: &str) -> bool {
        match self {
            Self::All => true,
            Self::Set(ids) => ids.contains(id),
        }
    }
}

/// Stands where a key has no secret: no secret is known whose verifier this is, and none can be found.
const VACANT: Digest = [0; 32];

/// Whether two digests are equal, in constant time. By words: each comparison is guarded for itself, which costs more than it does.
fn same(one: &Digest, other: &Digest) -> Choice {
    let (one, other) = (one.as_chunks().0, other.as_chunks().0);
    one.iter()
        .zip(other)
        .fold(Choice::from(1), |same, (one, other)| same & u64::from_ne_bytes(*one).ct_eq(&u64::from_ne_bytes(*other)))
}

/// What a request shows, still unchecked.
struct Credentials<'a> {
    key_id: &'a str,
    secret: &'a str,
}

impl<'a> Credentials<'a> {
    /// The pair of headers decides where both are there, else the bearer; the other form is not looked at.
    fn read(headers: &'a HeaderMap) -> Result<Self, Unauthenticated> {
        let key_id = at_most_one(headers, &KEY_HEADER)?;
        let secret = at_most_one(headers, &SECRET_HEADER)?;
        if let (Some(key_id), Some(secret)) = (key_id, secret) {
            return Ok(Self { key_id: text(key_id)?, secret: text(secret)? });
        }
        let authorization = text(at_most_one(headers, &AUTHORIZATION)?.ok_or(Unauthenticated)?)?;
        let (scheme, pair) = authorization.split_once(' ').ok_or(Unauthenticated)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(Unauthenticated);
        }
        let (key_id, secret) = pair.trim_start_matches(' ').split_once(':').ok_or(Unauthenticated)?;
        Ok(Self { key_id, secret })
    }
}

/// The header's value, if there is one; of two copies no one can say which was meant.
fn at_most_one(headers: &HeaderMap, name: impl AsHeaderName) -> Result<Option<&HeaderValue>, Unauthenticated> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        (_, Some(_)) => Err(Unauthenticated),
    }
}

/// The value as text; no credential has anything but ASCII in it.
fn text(value: &HeaderValue) -> Result<&str, Unauthenticated> {
    value.to_str().map_err(|_| Unauthenticated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Its name, the header lines, and the application that they prove.
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], Option<&'a str>);

    const KEY: &str = "X-Api-Key";
    const SECRET: &str = "X-Api-Secret";
    const BEARER: &str = "Authorization";

    fn application(id: &str) -> Arc<Application> {
        Arc::new(Application::new(id, id, PermissionSet(1), Grants::All, Arc::new(Window::new(300))))
    }

    fn access(keys: &[(&str, &str, &str)]) -> Access {
        let access = Access::new(Vault::new(&[7; 32], Random::System));
        for (id, owner, secret) in keys {
            access.change(|directory| directory.put_key(id, &application(owner), &[access.verifier(secret)], None));
        }
        access
    }

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let line = |(name, value): &(&str, &str)| {
            let value = HeaderValue::from_bytes(value.as_bytes()).expect("a header value");
            (HeaderName::from_bytes(name.as_bytes()).expect("a header name"), value)
        };
        let mut map = HeaderMap::new();
        for (name, value) in lines.iter().map(line) {
            map.append(name, value);
        }
        map
    }

    fn who(access: &Access, lines: &[(&str, &str)]) -> Option<Box<str>> {
        access.authenticate(&headers(lines), Timestamp(0)).ok().map(|caller| caller.application.id.clone())
    }

    #[test]
    fn credentials_are_taken_as_the_protocol_says() {
        let (k, s, k2, s2) = ("cpk_1", "cps_a1", "cpk_2", "cps_b2");
        let access = access(&[(k, "one", s), (k2, "two", s2)]);
        let bearer = |text: &str| text.replace('K', k).replace('S', s);
        let right = bearer("Bearer K:S");
        let right = right.as_str();

        let cases: &[Case<'_>] = &[
            ("nothing", &[], None),
            ("right headers", &[(KEY, k), (SECRET, s)], Some("one")),
            ("right bearer", &[(BEARER, right)], Some("one")),
            ("both right: headers decide", &[(KEY, k2), (SECRET, s2), (BEARER, right)], Some("two")),
            ("right headers, malformed bearer", &[(KEY, k), (SECRET, s), (BEARER, "Bearer \u{e9}")], Some("one")),
            ("right headers, two bearers", &[(KEY, k), (SECRET, s), (BEARER, "a"), (BEARER, "b")], Some("one")),
            ("wrong headers, right bearer", &[(KEY, k), (SECRET, "x"), (BEARER, right)], None),
            ("empty headers, right bearer", &[(KEY, ""), (SECRET, ""), (BEARER, right)], None),
            ("unknown key", &[(KEY, "cpk_0"), (SECRET, s)], None),
            ("a secret of another key", &[(KEY, k), (SECRET, s2)], None),
            ("key alone", &[(KEY, k)], None),
            ("secret alone", &[(SECRET, s)], None),
            ("key alone, right bearer", &[(KEY, "x"), (BEARER, right)], Some("one")),
            ("secret alone, right bearer", &[(SECRET, "x"), (BEARER, right)], Some("one")),
            ("non-ASCII key alone, right bearer", &[(KEY, "\u{e9}"), (BEARER, right)], Some("one")),
            ("key alone, wrong bearer", &[(KEY, k), (BEARER, "Bearer x:y")], None),
            ("two keys", &[(KEY, k), (KEY, k), (SECRET, s)], None),
            ("two secrets", &[(KEY, k), (SECRET, s), (SECRET, s)], None),
            ("two keys and no secret, right bearer", &[(KEY, k), (KEY, k), (BEARER, right)], None),
            ("two bearers", &[(BEARER, right), (BEARER, right)], None),
            ("scheme in lower case", &[(BEARER, &bearer("bearer K:S"))], Some("one")),
            ("scheme in upper case", &[(BEARER, &bearer("BEARER K:S"))], Some("one")),
            ("several spaces", &[(BEARER, &bearer("Bearer   K:S"))], Some("one")),
            ("space after the colon", &[(BEARER, &bearer("Bearer K: S"))], None),
            ("no space", &[(BEARER, &bearer("BearerK:S"))], None),
            ("other scheme", &[(BEARER, &bearer("Basic K:S"))], None),
            ("no colon", &[(BEARER, &bearer("Bearer KS"))], None),
            ("colon after the secret", &[(BEARER, &bearer("Bearer K:S:"))], None),
            ("colon before the secret", &[(BEARER, &bearer("Bearer K::S"))], None),
            ("colon before the key", &[(BEARER, &bearer("Bearer :K:S"))], None),
            ("non-ASCII bearer", &[(BEARER, &bearer("Bearer K:S\u{e9}"))], None),
            ("non-ASCII secret", &[(KEY, k), (SECRET, "\u{e9}")], None),
            ("secret in upper case", &[(KEY, k), (SECRET, &s.to_uppercase())], None),
            ("empty bearer", &[(BEARER, "Bearer :")], None),
        ];
        for (case, lines, expected) in cases {
            assert_eq!(who(&access, lines).as_deref(), *expected, "{case}");
        }
    }

    /// No key that is issued has a colon in its secret, so that this is all that tells the first colon from the last.
    #[test]
    fn a_bearer_is_split_at_its_first_colon() {
        let access = access(&[("cpk_1", "one", "a:b"), ("cpk_1:a", "two", "b")]);
        assert_eq!(who(&access, &[(BEARER, "Bearer cpk_1:a:b")]).as_deref(), Some("one"));
    }

    #[test]
    fn a_change_of_an_application_reaches_its_keys_and_no_others() {
        let access = access(&[("cpk_1", "one", "a"), ("cpk_2", "two", "b")]);
        let window = Arc::new(Window::new(300));
        let changed = Arc::new(Application::new("one", "one", PermissionSet(2), Grants::All, window));
        access.change(|directory| directory.put_application(&changed));
        let permissions = |key, secret| {
            let caller =
                access.authenticate(&headers(&[(KEY, key), (SECRET, secret)]), Timestamp(0)).expect("a live key");
            caller.application.permissions
        };
        assert_eq!([permissions("cpk_1", "a"), permissions("cpk_2", "b")], [PermissionSet(2), PermissionSet(1)]);
    }

    #[test]
    fn grants_cover_all_or_just_what_they_name() {
        let some = Grants::Set(BTreeSet::from(["a-1".into()]));
        assert!(Grants::All.covers("b-2") && some.covers("a-1") && !some.covers("b-2"));
    }
}
