//! The print shop as a second contract for tests of the framework, with three faults that a real
//! shop does not have: a printer whose handler panics, a printer that never answers, and writes
//! that never end.

pub(crate) use print_shop::contract::{CATALOGUE, Contract};

use crate::harness::{Key, Server, Tenant, serve};
use print_shop::Shop;
use print_shop::contract::{
    CleanRollersArgs, CleanRollersError, Command, FillTrayArgs, FillTrayError, Floor, FloorTools, GetPrinterArgs,
    GetPrinterError, GetTrayArgs, GetTrayError, JobPage, JobsTools, ListJobsArgs, ListJobsError, ListMachinesArgs,
    ListMachinesError, OpenPanelArgs, OpenPanelError, Panel, PrintPageArgs, PrintPageError, Printer, PrinterCapability,
    PrinterId, PrintersTools, PrintingTools, Tray, TrayCapability, TrayId, TraysTools,
};
use print_shop::machines::Machines;
use std::sync::Arc;
use toolwarrant::BoxFuture;
use toolwarrant::handler::{Call, Caller, Flag, Reply, Resource, Target, Unresolved};
use toolwarrant::tasks::{Executor, Leave, Reading, Sent, Unreadable, Write};

pub(crate) async fn shop(tenants: Vec<Tenant>) -> (Server, Vec<Vec<Key>>) {
    let unruly = Unruly(Shop::new(Machines::default()));
    serve(|_| (Contract(Arc::new(unruly)), Arc::new(Mute)), tenants).await
}

/// Adds `p-bug`, which makes a handler panic, and `p-slow`, which makes it wait forever. Otherwise
/// they equal `p-1`.
pub(crate) struct Unruly(Shop);

impl Resource<PrinterId> for Unruly {
    type View = Printer;
    type Capability = PrinterCapability;

    async fn resolve(&self, caller: &Caller, id: &PrinterId) -> Result<Printer, Unresolved> {
        if !["p-bug", "p-slow"].contains(&id.as_str()) {
            return self.0.resolve(caller, id).await;
        }
        let known = PrinterId::new("p-1").map_err(|_| Unresolved::NotFound)?;
        self.0.resolve(caller, &known).await.map(|printer| Printer { printer_id: id.clone(), ..printer })
    }

    fn flag(view: &Printer, capability: PrinterCapability) -> Flag {
        <Shop as Resource<PrinterId>>::flag(view, capability)
    }
}

impl Resource<TrayId> for Unruly {
    type View = Tray;
    type Capability = TrayCapability;

    async fn resolve(&self, caller: &Caller, id: &TrayId) -> Result<Tray, Unresolved> {
        self.0.resolve(caller, id).await
    }

    fn flag(view: &Tray, capability: TrayCapability) -> Flag {
        <Shop as Resource<TrayId>>::flag(view, capability)
    }
}

impl PrintersTools for Unruly {
    async fn get_printer(
        &self,
        call: &Call<'_>,
        printer: &Target<Printer>,
        args: GetPrinterArgs,
    ) -> Result<Reply<Printer>, GetPrinterError> {
        match printer.printer_id.as_str() {
            "p-bug" => panic!("this printer is a bug"),
            "p-slow" => std::future::pending().await,
            _ => self.0.get_printer(call, printer, args).await,
        }
    }

    async fn clean_rollers(
        &self,
        call: &Call<'_>,
        printer: &Target<Printer>,
        args: CleanRollersArgs,
    ) -> Result<Reply<Printer>, CleanRollersError> {
        self.0.clean_rollers(call, printer, args).await
    }
}

impl PrintingTools for Unruly {
    async fn open_panel(&self, call: &Call<'_>, args: OpenPanelArgs) -> Result<Reply<Panel>, OpenPanelError> {
        self.0.open_panel(call, args).await
    }

    async fn print_page(
        &self,
        call: &Call<'_>,
        printer: &Target<Printer>,
        args: PrintPageArgs,
    ) -> Result<Command, PrintPageError> {
        self.0.print_page(call, printer, args).await
    }
}

impl TraysTools for Unruly {
    async fn get_tray(
        &self,
        call: &Call<'_>,
        tray: &Target<Tray>,
        args: GetTrayArgs,
    ) -> Result<Reply<Tray>, GetTrayError> {
        self.0.get_tray(call, tray, args).await
    }

    async fn fill_tray(
        &self,
        call: &Call<'_>,
        tray: &Target<Tray>,
        args: FillTrayArgs,
    ) -> Result<Command, FillTrayError> {
        self.0.fill_tray(call, tray, args).await
    }
}

impl FloorTools for Unruly {
    async fn list_machines(&self, call: &Call<'_>, args: ListMachinesArgs) -> Result<Reply<Floor>, ListMachinesError> {
        self.0.list_machines(call, args).await
    }
}

impl JobsTools for Unruly {
    async fn list_jobs(&self, call: &Call<'_>, args: ListJobsArgs) -> Result<Reply<JobPage>, ListJobsError> {
        self.0.list_jobs(call, args).await
    }
}

/// Accepts every write and never reports its end.
pub(crate) struct Mute;

impl Executor for Mute {
    fn baseline<'a>(&'a self, _: &'a Write) -> BoxFuture<'a, Result<String, Unreadable>> {
        Box::pin(async { Ok("1".to_owned()) })
    }

    fn send<'a>(&'a self, _: &'a Write, _: Leave) -> BoxFuture<'a, Sent> {
        Box::pin(std::future::pending())
    }

    fn look_up<'a>(&'a self, _: &'a Write) -> BoxFuture<'a, Result<Option<Sent>, Unreadable>> {
        Box::pin(std::future::pending())
    }

    fn probe<'a>(&'a self, _: &'a Write) -> BoxFuture<'a, Reading> {
        Box::pin(std::future::pending())
    }
}
