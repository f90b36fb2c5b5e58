//! The handlers that set and clear the egress proxy: `spec/tools/proxy.toml`.

use super::check_offer;
use crate::phones::contract::{
    ClearProxyArgs, ClearProxyError, Command, Host, ProxyTools, SetProxyArgs, SetProxyError,
};
use crate::phones::devices::Phones;
use crate::phones::port::DeviceSnapshot;
use crate::phones::proxy_hosts::NO_HOST;
use std::sync::Arc;
use toolwarrant::handler::{Call, Target};
use toolwarrant::text::words;

impl ProxyTools for Phones {
    async fn set_proxy(
        &self,
        _: &Call<'_>,
        device: &Target<Arc<DeviceSnapshot>>,
        args: SetProxyArgs,
    ) -> Result<Command, SetProxyError> {
        let mut args = args;
        let SetProxyArgs { scheme, host, .. } = &mut args;
        check_offer(SetProxyArgs::SCHEME, scheme, &device.proxy_schemes, |scheme| scheme.as_str())
            .map_err(|what| SetProxyError::NotOffered { what })?;
        let judged = self.proxy_hosts.judge(host.as_str());
        let refused =
            |why| SetProxyError::InvalidArgument { what: words!["`", SetProxyArgs::HOST, "` ", &*host, " ", why] };
        *host = judged.and_then(|canonical| Host::new(&canonical).map_err(|_| NO_HOST)).map_err(refused)?;
        match self.platforms.of(&args.device_id).ok().and_then(|platform| platform.inexpressible(&args)) {
            Some(what) => Err(SetProxyError::InvalidArgument { what }),
            None => Ok(Command::SetProxy(args)),
        }
    }

    async fn clear_proxy(
        &self,
        _: &Call<'_>,
        _: &Target<Arc<DeviceSnapshot>>,
        args: ClearProxyArgs,
    ) -> Result<Command, ClearProxyError> {
        Ok(Command::ClearProxy(args))
    }
}
