//! Who calls: applications, their keys, what they may do and see, and the proof that a request is theirs.
//!
//! A [`Caller`] comes from [`Access::authenticate`] alone. Whether it may use a tool is judged by the pipeline. No secret
//! is kept, only a verifier of it. Start at [`Access`].

use super::catalogue::PermissionSet;
use super::limit::Window;
use super::text::Secret;
use arc_swap::ArcSwap;
use axum::http::header::{AUTHORIZATION, AsHeaderName, HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};
use subtle::{Choice, ConstantTimeEq};

/// Secrets that a key can have at a time: the one in use and the one that takes over.
const LIVE_SECRETS: usize = 2;

static KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");
static SECRET_HEADER: HeaderName = HeaderName::from_static("x-api-secret");

/// Every key of this process. Reading takes no lock: a change swaps in a whole new directory.
pub struct Access {
    directory: ArcSwap<Directory>,
    /// HMAC-SHA256 with the pepper absorbed; cloned for each check.
    peppered: Hmac<Sha256>,
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
    /// What is left of its request budget.
    pub window: Window,
    /// The result of `tools/list` for these permissions, once it has been asked for.
    pub(super) tools: OnceLock<Bytes>,
}

impl Application {
    /// An application with a fresh budget of `requests_per_minute`.
    #[must_use]
    pub fn new(id: &str, name: &str, permissions: PermissionSet, grants: Grants, requests_per_minute: u32) -> Self {
        let window = Window::new(requests_per_minute);
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

/// A key as it is handed out, once: the secret cannot be had again.
#[derive(Debug)]
pub struct NewKey {
    /// `cpk_` and 16 hexadecimal digits.
    pub key_id: String,
    /// `cps_` and 64 hexadecimal digits: 256 random bits.
    pub secret: Secret<String>,
}

/// A refusal that says no more than this, whatever was missing, malformed, unknown, wrong or revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the credentials are missing, malformed or wrong")]
pub struct Unauthenticated;

impl Access {
    /// An empty directory, whose verifiers are made with `pepper`.
    #[must_use]
    pub fn new(pepper: [u8; 32]) -> Self {
        // HMAC itself fills a short key up with zeroes; a whole block leaves no length that could be wrong.
        let mut block = [0; 64];
        block[..pepper.len()].copy_from_slice(&pepper);
        Self { directory: ArcSwap::default(), peppered: Hmac::new(&block.into()) }
    }

    /// Finds out who sent these headers.
    ///
    /// # Errors
    /// [`Unauthenticated`], after the same work for an unknown key as for a wrong secret.
    pub fn authenticate(&self, headers: &HeaderMap) -> Result<Caller, Unauthenticated> {
        let Credentials { key_id, secret } = Credentials::read(headers)?;
        let directory = self.directory.load();
        let known = directory.keys.get_key_value(key_id);
        let live = known.map_or(&[VACANT; LIVE_SECRETS], |(_, key)| &key.live);
        let shown = self.verifier(secret);
        let matches = live.iter().fold(Choice::from(0), |any, verifier| any | verifier[..].ct_eq(&shown[..]));
        match known {
            Some((key_id, key)) if matches.into() => {
                Ok(Caller { application: Arc::clone(&key.application), key_id: Arc::clone(key_id), _proof: () })
            }
            _ => Err(Unauthenticated),
        }
    }

    /// Gives `application` another key.
    ///
    /// # Errors
    /// The system has no randomness to give.
    pub fn issue_key(&self, application: &Arc<Application>) -> Result<NewKey, getrandom::Error> {
        let key_id = format!("cpk_{:016x}", getrandom::u64()?);
        let (secret, verifier) = self.new_secret()?;
        let key = Key { application: Arc::clone(application), live: [verifier, VACANT] };
        self.change(|keys| drop(keys.insert(key_id.as_str().into(), key.clone())));
        Ok(NewKey { key_id, secret })
    }

    /// Gives a key another secret, which lives beside the latest one and ends any older; `None` where there is no such key.
    ///
    /// # Errors
    /// The system has no randomness to give.
    pub fn rotate_key(&self, key_id: &str) -> Result<Option<NewKey>, getrandom::Error> {
        let (secret, verifier) = self.new_secret()?;
        let mut found = false;
        self.change(|keys| {
            let key = keys.get_mut(key_id);
            found = key.is_some();
            if let Some(Key { live, application: _ }) = key {
                *live = [verifier, live[0]];
            }
        });
        Ok(found.then(|| NewKey { key_id: key_id.to_owned(), secret }))
    }

    /// Ends a key at once, with all its secrets; an unknown one stays unknown.
    pub fn revoke_key(&self, key_id: &str) {
        self.change(|keys| drop(keys.remove(key_id)));
    }

    /// Swaps in a changed copy of the directory. Repeated where two changes meet, so `edit` may run more than once.
    fn change(&self, mut edit: impl FnMut(&mut HashMap<Arc<str>, Key>)) {
        self.directory.rcu(|directory| {
            let mut keys = directory.keys.clone();
            edit(&mut keys);
            Directory { keys }
        });
    }

    fn new_secret(&self) -> Result<(Secret<String>, Verifier), getrandom::Error> {
        let mut secret = String::from("cps_");
        for _ in 0..4 {
            let _ = write!(secret, "{:016x}", getrandom::u64()?);
        }
        let verifier = self.verifier(&secret);
        Ok((Secret::new(secret), verifier))
    }

    fn verifier(&self, secret: &str) -> Verifier {
        self.peppered.clone().chain_update(secret).finalize().into_bytes().into()
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

/// HMAC-SHA256 of a secret under the pepper.
type Verifier = [u8; 32];

/// Stands where a key has no secret: no secret is known whose verifier this is, and none can be found.
const VACANT: Verifier = [0; 32];

#[derive(Default)]
struct Directory {
    keys: HashMap<Arc<str>, Key>,
}

#[derive(Clone)]
struct Key {
    application: Arc<Application>,
    /// The latest first. All are compared each time, so that the time taken does not tell how many there are.
    live: [Verifier; LIVE_SECRETS],
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

    /// Its name, the header lines, and the application that they prove.
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], Option<&'a str>);

    const KEY: &str = "X-Api-Key";
    const SECRET: &str = "X-Api-Secret";
    const BEARER: &str = "Authorization";

    fn application(id: &str) -> Arc<Application> {
        Arc::new(Application::new(id, id, PermissionSet(1), Grants::All, 300))
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
        access.authenticate(&headers(lines)).ok().map(|caller| caller.application.id.clone())
    }

    fn pair(access: &Access, key_id: &str, secret: &Secret<String>) -> Option<Box<str>> {
        who(access, &[(KEY, key_id), (SECRET, secret.expose())])
    }

    #[test]
    fn credentials_are_taken_as_the_protocol_says() {
        let access = Access::new([7; 32]);
        let NewKey { key_id, secret } = access.issue_key(&application("one")).expect("randomness");
        let other = access.issue_key(&application("two")).expect("randomness");
        let (k, s, k2, s2) = (key_id.as_str(), secret.expose().as_str(), other.key_id.as_str(), other.secret.expose());
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

    #[test]
    fn a_new_key_has_the_recognisable_form() {
        let NewKey { key_id, secret } = Access::new([7; 32]).issue_key(&application("one")).expect("randomness");
        for (text, prefix, digits) in [(key_id.as_str(), "cpk_", 16), (secret.expose(), "cps_", 64)] {
            let hex = text.strip_prefix(prefix).expect(prefix);
            assert_eq!(hex.len(), digits, "{text}");
            assert!(hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')), "{text}");
        }
    }

    #[test]
    fn rotation_keeps_the_latest_two_secrets() {
        let access = Access::new([7; 32]);
        let NewKey { key_id, secret: first } = access.issue_key(&application("one")).expect("randomness");
        let rotate = || access.rotate_key(&key_id).expect("randomness").expect("a known key").secret;
        let second = rotate();
        assert!(pair(&access, &key_id, &first).is_some() && pair(&access, &key_id, &second).is_some());
        let third = rotate();
        assert!(pair(&access, &key_id, &second).is_some() && pair(&access, &key_id, &third).is_some());
        assert!(pair(&access, &key_id, &first).is_none());
        assert!(access.rotate_key("cpk_0").expect("randomness").is_none());
    }

    #[test]
    fn a_revoked_key_is_refused_at_once_and_others_stay() {
        let access = Access::new([7; 32]);
        let owner = application("one");
        let [gone, kept] = [(); 2].map(|()| access.issue_key(&owner).expect("randomness"));
        access.revoke_key(&gone.key_id);
        assert!(pair(&access, &gone.key_id, &gone.secret).is_none());
        assert!(pair(&access, &kept.key_id, &kept.secret).is_some());
    }

    #[test]
    fn a_verifier_is_hmac_sha256_under_the_pepper() {
        // RFC 4231, test case 2, whose key of four bytes is here followed by the zeroes that HMAC itself adds.
        let mut pepper = [0; 32];
        pepper[..4].copy_from_slice(b"Jefe");
        let verifier = Access::new(pepper).verifier("what do ya want for nothing?");
        assert_eq!(verifier[..8], [0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e]);
    }

    #[test]
    fn grants_cover_all_or_just_what_they_name() {
        let some = Grants::Set(BTreeSet::from(["a-1".into()]));
        assert!(Grants::All.covers("b-2") && some.covers("a-1") && !some.covers("b-2"));
    }
}
