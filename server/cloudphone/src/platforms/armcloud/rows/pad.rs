//! The row of one pad.

use super::conditions;
use crate::adapter_kit::phone_ledger::Row;
use crate::phones::port::DeviceSnapshot;
use crate::platforms::armcloud::api::{Id, Number, Text};
use serde::{Deserialize, Serialize};
use serde_with::{As, DefaultOnError, TryFromInto};
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use toolwarrant::text::Untrusted;

type MaybeId = DefaultOnError<Option<TryFromInto<Id>>>;

/// The platform's data about a pad, with its names in answers and in the ledger. `proxyIp` is left
/// out: it is for proxies that the platform manages, without port and scheme.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pad {
    /// The platform's id, which may pass to another pad.
    #[serde(deserialize_with = "As::<TryFromInto<Id>>::deserialize")]
    pub(super) pad_code: String,
    /// The purchased seat (VMOS, VSPhone).
    #[serde(default, deserialize_with = "As::<MaybeId>::deserialize", skip_serializing_if = "Option::is_none")]
    pub(super) equipment_id: Option<String>,
    #[serde(default, deserialize_with = "As::<Text>::deserialize", skip_serializing_if = "Option::is_none")]
    pub(super) pad_name: Option<Untrusted>,
    /// From `infos`.
    #[serde(default, deserialize_with = "As::<Number>::deserialize", skip_serializing_if = "Option::is_none")]
    pub(super) pad_status: Option<i64>,
    /// From `userPadList`.
    #[serde(default, deserialize_with = "As::<Number>::deserialize", skip_serializing_if = "Option::is_none")]
    pub(super) cvm_status: Option<i64>,
    /// 1 if the platform is connected to the pad (ARMCloud).
    #[serde(default, deserialize_with = "As::<Number>::deserialize", skip_serializing_if = "Option::is_none")]
    pub(super) online: Option<i64>,
    /// `13` or `Android13`.
    #[serde(default, deserialize_with = "As::<Text>::deserialize", skip_serializing_if = "Option::is_none")]
    pub(super) android_version: Option<Untrusted>,
    /// `android14`.
    #[serde(default, deserialize_with = "As::<Text>::deserialize", skip_serializing_if = "Option::is_none")]
    pub(super) image_version: Option<Untrusted>,
    #[serde(default, deserialize_with = "As::<Text>::deserialize", skip_serializing_if = "Option::is_none")]
    pub(super) rom_version: Option<Untrusted>,
    /// `m2-3`.
    #[serde(default, deserialize_with = "As::<Text>::deserialize", skip_serializing_if = "Option::is_none")]
    pub(super) pad_grade: Option<Untrusted>,
    #[serde(default, deserialize_with = "As::<Text>::deserialize", skip_serializing_if = "Option::is_none")]
    pub(super) config_name: Option<Untrusted>,
    #[serde(default, deserialize_with = "As::<Text>::deserialize", skip_serializing_if = "Option::is_none")]
    pub(super) good_name: Option<Untrusted>,
    /// The data centre.
    #[serde(default, deserialize_with = "As::<Text>::deserialize", skip_serializing_if = "Option::is_none")]
    pub(super) idc_code: Option<Untrusted>,
    /// The source of the pad's requests, as the platform sees it (`userPadList`).
    #[serde(default, deserialize_with = "As::<MaybeId>::deserialize", skip_serializing_if = "Option::is_none")]
    pub(super) public_ip: Option<String>,
}

impl Pad {
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        matches!(self.pad_status, Some(conditions::DELETED | conditions::DELETED_IN_CALLBACKS))
    }

    /// Joins two rows of a pad. A value of `self` counts first.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            pad_code: self.pad_code,
            equipment_id: self.equipment_id.or(other.equipment_id),
            pad_name: self.pad_name.or(other.pad_name),
            pad_status: self.pad_status.or(other.pad_status),
            cvm_status: self.cvm_status.or(other.cvm_status),
            online: self.online.or(other.online),
            android_version: self.android_version.or(other.android_version),
            image_version: self.image_version.or(other.image_version),
            rom_version: self.rom_version.or(other.rom_version),
            pad_grade: self.pad_grade.or(other.pad_grade),
            config_name: self.config_name.or(other.config_name),
            good_name: self.good_name.or(other.good_name),
            idc_code: self.idc_code.or(other.idc_code),
            public_ip: self.public_ip.or(other.public_ip),
        }
    }
}

impl Row for Pad {
    type Made = PadViews;

    fn code(&self) -> &str {
        &self.pad_code
    }

    fn public_address(&self) -> Option<IpAddr> {
        self.public_ip.as_ref()?.parse().ok()
    }

    fn serial(&self) -> Option<String> {
        self.equipment_id.clone().filter(|seat| seat != "0" && !seat.starts_with('-'))
    }
}

/// Made once per row: for an old row or a silent platform, and for a current row.
#[derive(Debug, Default)]
pub struct PadViews {
    pub(super) usual: [OnceLock<Arc<DeviceSnapshot>>; 2],
    /// For each set of operations that are not served.
    pub(super) limited: OnceLock<Box<[OnceLock<Arc<DeviceSnapshot>>; 32]>>,
}
