//! The handlers that set and clear the egress proxy: `spec/tools/proxy.toml`.

use super::offered;
use crate::phones::contract::{ClearProxyArgs, ClearProxyError, Command, ProxyTools, SetProxyArgs, SetProxyError};
use crate::phones::devices::Phones;
use crate::phones::views::Seen;
use std::sync::Arc;
use toolwarrant::{Call, Target, words};

impl ProxyTools for Phones {
    async fn set_proxy(
        &self,
        _: &Call<'_>,
        device: &Target<Arc<Seen>>,
        args: SetProxyArgs,
    ) -> Result<Command, SetProxyError> {
        let SetProxyArgs { scheme, host, .. } = &args;
        offered("scheme", scheme, &device.proxy_schemes, |scheme| scheme.as_str())
            .map_err(|what| SetProxyError::NotOffered { what })?;
        let judged = self.proxy_hosts.judge(host.as_str());
        judged.map_err(|why| SetProxyError::InvalidArgument { what: words!["`host` ", host, " ", why] })?;
        Ok(Command::SetProxy(args))
    }

    async fn clear_proxy(
        &self,
        _: &Call<'_>,
        _: &Target<Arc<Seen>>,
        args: ClearProxyArgs,
    ) -> Result<Command, ClearProxyError> {
        Ok(Command::ClearProxy(args))
    }
}
