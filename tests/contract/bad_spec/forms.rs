//! Mistakes in the record of stored forms, and contracts that cannot read what is recorded.

use super::Edit::{self, Change, Write};
use super::{PRINTERS, PRINTING, STORED};

/// The form of `print_page` with this argument for the printer and these modes.
macro_rules! page {
    ($printer:literal, $modes:literal) => {
        concat!(
            "[[stored.print_page]]\n",
            $printer,
            " = { type = \"string\", min = 3, max = 3, prefix = \"p-\", charset = [\"0-9\"] }\n",
            "mode = { type = \"enum\", values = ",
            $modes,
            " }\npin = { type = \"string\", optional = true }\n"
        )
    };
}

/// A form that the contract reads.
const PRESENT: &str = page!("printer_id", "[\"draft\", \"fine\"]");

/// A form with another name for the printer.
const RENAMED: &str = page!("machine", "[\"draft\", \"fine\"]");

/// Each case: the expected behaviour, and the edits that provoke it.
pub(super) const CASES: &[(&str, &[(&str, Edit)])] = &[
    ("a_renamed_argument_of_a_task_needs_its_former_name", &[(STORED, Write(RENAMED))]),
    (
        "a_value_that_a_task_in_flight_can_have_is_not_removed",
        &[(STORED, Write(page!("printer_id", "[\"draft\", \"fine\", \"photo\"]")))],
    ),
    (
        "a_new_required_argument_is_missing_in_tasks_in_flight",
        &[(
            STORED,
            Write(
                "[[stored.fill_tray]]\ntray_id = { type = \"string\", min = 3, max = 3, prefix = \"p-\", charset = [\"0-9\"] }\n",
            ),
        )],
    ),
    (
        "a_tool_that_is_gone_may_have_tasks_in_flight",
        &[(STORED, Write("[[stored.scan_page]]\nmode = { type = \"boolean\" }\n"))],
    ),
    (
        "a_reason_without_a_form_that_needs_it_is_shown",
        &[(
            STORED,
            Write(concat!(
                page!("printer_id", "[\"fine\"]"),
                "[unreadable.print_page]\n1 = \"Gone.\"\n2 = \"Gone.\"\n[unreadable.fax]\n1 = \"Gone.\"\n"
            )),
        )],
    ),
    (
        "the_reason_why_a_form_need_not_be_read_is_given",
        &[(STORED, Write(concat!(page!("machine", "[\"fine\"]"), "[unreadable.print_page]\n1 = \" \"\n")))],
    ),
    (
        "a_former_name_is_no_other_argument_and_only_in_tasks",
        &[
            (PRINTING, Change("mode = { type = \"Mode\",", "mode = { formerly = [\"pin\", \"Way\"], type = \"Mode\",")),
            (PRINTING, Change("copies = { type", "copies = { formerly = \"count\", type")),
            (PRINTERS, Change("[tool.args]\nprinter_id = { type", "[tool.args]\nprinter_id = { formerly = 3, type")),
        ],
    ),
];

/// Edits after which a former form can be read, or need not be.
pub(super) const SOUND: &[&[(&str, Edit)]] = &[
    &[(STORED, Write(PRESENT))],
    &[
        (STORED, Write(RENAMED)),
        (PRINTING, Change("printer_id = { type", "printer_id = { formerly = \"machine\", type")),
    ],
    &[(
        STORED,
        Write(concat!(page!("machine", "[\"fine\"]"), "[unreadable.print_page]\n1 = \"No printer is in use.\"\n")),
    )],
];
