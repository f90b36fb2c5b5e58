//! A mistake against each rule: the edits of the print shop's copy, under the name of the behaviour
//! that an author then sees. The cases are in the order of the rules.

use super::SpecEdit::{self, Append, Change, Remove, Write};
use super::{ERRORS, JOBS, PRINTERS, PRINTING, RESERVED, SERVICE, TRAYS, TYPES};

/// A tool without mistakes.
const FAX: &str = r#"
[[tool]]
name = "open_fax"
title = "Open a fax"
permission = "look"
effect = "issue"
http = "POST /v1/faxes"
result = "Panel"
summary = "Opens a fax."
use_when = "when you must."
"#;

/// Each case: the expected behaviour, and the edits that provoke it.
pub(super) const CASES: &[(&str, &[(&str, SpecEdit)])] = &[
    ("a_missing_file_is_named_and_nothing_else", &[(SERVICE, Remove)]),
    ("a_listed_file_that_is_missing_is_shown_with_the_line_to_write", &[(JOBS, Remove)]),
    ("a_file_that_is_not_listed_is_shown_with_the_line_to_write", &[("tools/faxing.toml", Write(FAX))]),
    ("broken_syntax_makes_nothing_unknown", &[(TYPES, Change("[type.Copies]", "[type.Copies"))]),
    (
        "mistakes_of_shape_all_show_and_hide_no_other",
        &[
            (PRINTING, Change("[tool.task]\nprobe =", "[tool.task]\nprob =")),
            (PRINTING, Change("settle_seconds = 5", "setle_seconds = 5\ncolour = \"blue\"")),
            (PRINTERS, Change("summary = \"Looks at a printer.\"\nuse_when = \"before you print.\"\n", "")),
            (PRINTERS, Change("effect = \"read\"", "effect = \"reed\"")),
            (SERVICE, Append("[permissions.fax]\ndoc = \"Fax.\"\n")),
            (ERRORS, Change("[error.out_of_ink]\nretryable = ", "[error.out_of_ink]\nretryable = 1 #")),
        ],
    ),
    (
        "a_name_is_spelt_as_rust_and_clients_take_it",
        &[
            (PRINTERS, Change("words = {", "move = {")),
            (TYPES, Append("[type.nib]\nkind = \"integer\"\nmin = 1\nmax = 2\ndoc = \"Nib.\"\n")),
            (TYPES, Change("values.fine =", "values.a__b = \"A.\"\nvalues.fine =")),
            (PRINTERS, Change("\"get_printer\"", "\"getPrinter\"")),
        ],
    ),
    (
        "a_name_is_declared_once_and_is_none_of_rust_or_the_framework",
        &[
            (TYPES, Change("values.fine =", "values.a1 = \"A.\"\nvalues.a_1 = \"A.\"\nvalues.fine =")),
            (
                TYPES,
                Append(
                    "[type.String]\nkind = \"integer\"\nmin = 1\nmax = 2\ndoc = \"Nib.\"\n[type.Option]\nkind = \"integer\"\nmin = 1\nmax = 2\ndoc = \"Nib.\"\n",
                ),
            ),
            (
                TYPES,
                Append(
                    "[type.TaskStatus]\nkind = \"enum\"\ndoc = \"State.\"\nvalues.done = \"Done.\"\n[type.Evidence]\nkind = \"integer\"\nmin = 1\nmax = 2\ndoc = \"E.\"\n[type.Task]\nkind = \"integer\"\nmin = 1\nmax = 2\ndoc = \"T.\"\n",
                ),
            ),
            (TYPES, Append("[type.GetPrinterArgs]\nkind = \"integer\"\nmin = 1\nmax = 2\ndoc = \"Nib.\"\n")),
            (TYPES, Append("[type.PrinterCapability]\nkind = \"integer\"\nmin = 1\nmax = 2\ndoc = \"Nib.\"\n")),
            (SERVICE, Append("[resource.args]\nid = \"Note\"\ndoc = \"Args.\"\n")),
            (SERVICE, Append("[resource.task]\nid = \"Note\"\ndoc = \"A task.\"\n")),
            (ERRORS, Append("fields.message = { type = \"string\", ours = true, doc = \"Again.\" }\n")),
            (
                PRINTING,
                Change("mode = { type", "idempotency_key = { type = \"string\", doc = \"Key.\" }\nmode = { type"),
            ),
            (PRINTING, Change("[\"out_of_ink\"]", "[\"out_of_ink\", \"out_of_ink\"]")),
        ],
    ),
    (
        "a_reserved_name_never_returns",
        &[
            (PRINTING, Change("\"print_page\"", "\"fax_page\"")),
            (
                ERRORS,
                Append(
                    "[error.paper_jam]\nretryable = true\nretry_after_seconds = 5\nhttp = 500\nmeaning = \"Jam.\"\nremedy = \"Pull.\"\n",
                ),
            ),
            (RESERVED, Append("values = [\"fine\", \"rollers\", \"matt\"]\n")),
        ],
    ),
    (
        "an_unknown_permission_is_shown_with_the_one_that_was_meant",
        &[
            (PRINTERS, Change("permission = \"look\"", "permission = \"lok\"")),
            (SERVICE, Change("implies = [\"look\"]", "implies = [\"peek_inside\"]")),
        ],
    ),
    (
        "an_unknown_resource_is_shown_with_the_one_that_was_meant",
        &[(PRINTERS, Change("resource = \"printer\"", "resource = \"pinter\""))],
    ),
    (
        "an_unknown_capability_is_shown_with_the_one_that_was_meant",
        &[(PRINTING, Change("requires = \"paper\"", "requires = \"papers\""))],
    ),
    (
        "an_unknown_probe_is_shown_once_though_every_case_shares_it",
        &[(PRINTING, Change("\"page_counter\"", "\"page_count\""))],
    ),
    (
        "an_unknown_type_is_shown_and_nothing_that_follows_from_it",
        &[(PRINTERS, Change("type = \"PrinterId\"", "type = \"PrintId\""))],
    ),
    (
        "an_unknown_error_is_shown_with_the_one_that_was_meant",
        &[(PRINTING, Change("[\"out_of_ink\"]", "[\"out_of_inc\"]"))],
    ),
    (
        "an_unknown_role_is_shown_with_the_one_that_was_meant",
        &[(ERRORS, Change("role = \"target_busy\"", "role = \"target_bussy\""))],
    ),
    (
        "a_revision_that_the_framework_does_not_speak_is_shown_with_those_that_it_does",
        &[(SERVICE, Change("\"2026-07-28\"", "\"2024-11-05\""))],
    ),
    ("a_contract_that_does_not_serve_the_fallback_is_refused", &[(SERVICE, Change(", \"2025-03-26\"", ""))]),
    (
        "an_unknown_selecting_argument_is_shown_with_the_one_that_was_meant",
        &[(PRINTING, Change("select = \"mode\"", "select = \"mod\""))],
    ),
    (
        "what_the_framework_answers_with_keeps_its_nature_and_its_fields",
        &[(
            ERRORS,
            Append(
                "[error.rate_limited]\nretryable = false\n[error.internal]\nfields.request_id = { type = \"integer\", doc = \"I.\" }\n[error.forbidden]\nretry_after_seconds = 5\n",
            ),
        )],
    ),
    (
        "permissions_do_not_imply_themselves",
        &[(SERVICE, Change("[permission.look]", "[permission.look]\nimplies = [\"print\"]"))],
    ),
    (
        "types_do_not_contain_themselves",
        &[(
            TYPES,
            Append(
                "fields.printer = { type = \"Knob\", doc = \"Where it is.\" }\n[type.Knob]\nkind = \"object\"\ndoc = \"A knob.\"\nfields.panels = { type = \"[Panel]\", doc = \"On it.\" }\n",
            ),
        )],
    ),
    ("an_empty_text_is_shown", &[(PRINTERS, Change("\"Looks at a printer.\"", "\" \""))]),
    (
        "a_text_of_two_lines_or_with_markup_or_unseen_characters_is_no_plain_text",
        &[
            (SERVICE, Change("doc = \"Look at printers.\"", "doc = \"\"\"Look at\nprinters.\"\"\"")),
            (SERVICE, Change("doc = \"Print.\"", "doc = \"Print <b>boldly</b>.\"")),
            (SERVICE, Change("doc = \"Service printers.\"", "doc = \"Service\u{200b} printers.\"")),
        ],
    ),
    (
        "a_word_in_backticks_that_names_nothing_is_shown_with_what_was_meant",
        &[
            (SERVICE, Change("Decide by `capabilities`.", "Decide by `capability`.")),
            (
                TRAYS,
                Change("summary = \"Looks at a paper tray.\"", "summary = \"Looks at a paper tray of the `Floor`.\""),
            ),
            (
                TYPES,
                Change(
                    "doc = \"What is written on it.\" }\nfields.capabilities = { type = \"P",
                    "doc = \"What serviced_by wrote on it.\" }\nfields.capabilities = { type = \"P",
                ),
            ),
        ],
    ),
    (
        "a_retired_value_in_plain_words_is_shown_in_each_text_that_does_not_allow_it",
        &[
            (
                RESERVED,
                Append(
                    "values = [\"gloss\", \"shut_down\", \"pause\", \"print\"]\n[allowed]\n\"Pages with a gloss feel wet.\" = \"a look of the page, no mode\"\n\"No text says gloss.\" = \"it is old\"\n",
                ),
            ),
            (PRINTERS, Change("title = \"Look at a printer\"", "title = \"Look, or Gloss\"")),
            (
                PRINTERS,
                Change("summary = \"Looks at a printer.\"", "summary = \"Looks at a printer. It never pauses.\""),
            ),
            (TRAYS, Change("notes = [\"Nothing weighs", "notes = [\"Pages with a gloss feel wet.\", \"Nothing weighs")),
            (SERVICE, Change("unread = \"The counter", "unread = \"It may be shut down. The counter")),
        ],
    ),
    (
        "a_placeholder_that_stands_for_nothing_is_shown_with_what_was_meant",
        &[
            (SERVICE, Change("and report it as unverified.", "and report {look_tool} as unverified.")),
            (SERVICE, Change("doc = \"Print.\"", "doc = \"Print {tray_holds} pages.\"")),
            (ERRORS, Change("task_id {task_id}", "task_id {job_id}")),
            (ERRORS, Change("remedy = \"Choose another printer.\"", "remedy = \"Not {colour}, {page} or {printer}.\"")),
            (
                ERRORS,
                Change(
                    "fields.colour = { type = \"string\", ours = true, doc = \"The colour.\" }",
                    "fields.colour = { type = \"string\", untrusted = true, doc = \"C.\" }\nfields.page = { type = \"url\", doc = \"P.\" }\nfields.printer = { type = \"Printer\", doc = \"P.\" }",
                ),
            ),
        ],
    ),
    (
        "a_tool_that_not_every_caller_may_call_is_hidden_from_them",
        &[
            (
                PRINTERS,
                Change(
                    "summary = \"Looks at a printer.\"",
                    "summary = \"Looks at a printer. print_page prints on it.\"",
                ),
            ),
            (JOBS, Change("permission = \"look\"", "permission = \"service\"")),
        ],
    ),
    (
        "what_says_when_not_to_use_a_tool_names_another",
        &[(TRAYS, Change("get_printer looks at a printer.", "Not for printers: get_tray knows none."))],
    ),
    (
        "what_follows_a_state_that_is_no_clear_end_names_a_tool",
        &[(SERVICE, Change("Look at the printer with get_printer or at the tray with get_tray.\"", "Go and look.\""))],
    ),
    (
        "a_retryable_error_says_after_how_many_seconds",
        &[(
            ERRORS,
            Append("[error.no_paper]\nretryable = true\nhttp = 503\nmeaning = \"No paper.\"\nremedy = \"Wait.\"\n"),
        )],
    ),
    (
        "a_long_tool_name_is_refused",
        &[(PRINTERS, Change("\"get_printer\"", "\"get_printer_and_everything_that_is_on_it\""))],
    ),
    (
        "a_description_that_is_too_long_shows_the_share_of_each_key",
        &[(SERVICE, Change("[text]", "[readers]\ndescription = 510\n\n[text]"))],
    ),
    (
        "a_doc_of_an_argument_that_is_too_long_is_shown",
        &[
            (SERVICE, Change("[text]", "[readers]\nargument = 40\n\n[text]")),
            (TRAYS, Change("doc = \"Sheets to put in.\"", "doc = \"Sheets to put in, of which there is no end.\"")),
        ],
    ),
    (
        "a_brief_that_is_too_long_is_shown",
        &[(SERVICE, Change("brief = \"sent\"", "brief = \"sent to the printer, which may or may not print it\""))],
    ),
    (
        "a_list_that_is_too_long_shows_the_share_of_each_tool",
        &[(SERVICE, Change("[text]", "[readers]\nlist = 8000\n\n[text]"))],
    ),
    (
        "a_list_that_is_too_long_with_its_output_schemas_shows_the_share_of_each_tool",
        &[(SERVICE, Change("[text]", "[readers]\nlist_with_outputs = 9000\n\n[text]"))],
    ),
    (
        "instructions_that_are_too_long_and_a_lead_that_is_are_shown",
        &[(SERVICE, Change("[text]", "[readers]\ninstructions = 900\nlead = 300\n\n[text]"))],
    ),
    (
        "bounds_leave_something_to_choose",
        &[
            (TYPES, Change("max_length = 8\n", "")),
            (TYPES, Change("max = 99", "max = 0")),
            (TYPES, Change("charset = \"a-z0-9\"", "charset = \"z-a\"")),
            (TYPES, Change("values.draft = \"In grey.\"\nvalues.fine = \"In colour.\"", "min = 1")),
        ],
    ),
    (
        "a_flag_fits_the_field_and_its_place",
        &[
            (PRINTERS, Change("type = \"boolean\", optional = true", "type = \"boolean\", nullable = true")),
            (
                TYPES,
                Change("type = \"string\", untrusted = true", "type = \"string\", untrusted = true, optional = true"),
            ),
            (PRINTING, Change("secret = true, optional = true", "secret = true, optional = true, default = \"1\"")),
            (
                TYPES,
                Change("fields.copies = { type = \"Copies\"", "fields.copies = { type = \"Copies\", secret = true"),
            ),
            (TYPES, Change("type = \"Copies\", secret = true", "type = \"Copies\", secret = true, ours = true")),
            (TYPES, Change("type = \"string\", untrusted = true", "type = \"string\", untrusted = true, ours = true")),
            (PRINTERS, Change("words = { type = \"string\"", "words = { type = \"string\", ours = true")),
            (PRINTERS, Change("weight = { type = \"integer\"", "weight = { type = \"url\"")),
            (PRINTERS, Change("urgent = { type = \"boolean\"", "urgent = { type = \"boolean\", told = true")),
            (PRINTERS, Change("type = \"[Note]\"", "type = \"[Panel]\"")),
        ],
    ),
    (
        "a_text_in_a_result_says_whose_it_is",
        &[
            (
                TYPES,
                Change(
                    "type = \"string\", untrusted = true, doc = \"What is written",
                    "type = \"string\", doc = \"What is written",
                ),
            ),
            (TYPES, Change("type = \"[Mode]\", doc", "type = \"[Note]\", doc")),
            (ERRORS, Change("type = \"string\", ours = true", "type = \"[string]\"")),
        ],
    ),
    (
        "a_field_that_may_be_null_says_what_null_means",
        &[(TYPES, Change("Last service; null if never.", "Last service."))],
    ),
    (
        "an_example_with_several_wrong_values_shows_all_of_them",
        &[(PRINTERS, Change("{ paper = true }", "{ paper = 1, rollers = 2 }, size = 3"))],
    ),
    (
        "the_method_and_the_path_of_an_http_twin_fit_its_tool",
        &[
            (JOBS, Append(FAX)),
            (
                JOBS,
                Append(
                    "[tool.args]\npages = { type = \"[Copies]\", doc = \"Pages.\" }\npin = { type = \"string\", secret = true, doc = \"Pin.\" }\ntray = { type = \"TrayId\", doc = \"Tray.\" }\n",
                ),
            ),
            (JOBS, Change("/v1/faxes", "/v1/faxes/{pages}/{pin}/{tray}/{tray}")),
            (PRINTERS, Change("GET /v1/printers/{printer_id}", "POST /v1/printers/{printer_id}")),
            (PRINTING, Change("POST /v1/panels", "GET /v1/panels")),
            (PRINTING, Change("POST /v1/printers/{printer_id}/pages", "PATCH /v1/printers/{printer_id}/pages")),
            (JOBS, Change("GET /v1/jobs/{task_id}", "DELETE /v1/jobs/{task_id}")),
        ],
    ),
    (
        "a_path_names_its_arguments_in_one_way_and_fits_one_twin",
        &[
            (JOBS, Append(FAX)),
            (JOBS, Append("[tool.args]\nid = { type = \"PrinterId\", doc = \"Where.\" }\n")),
            (JOBS, Change("POST /v1/faxes", "POST /v1/printers/{id}")),
            (PRINTING, Change("POST /v1/panels", "POST /v1/printers/first/{copies}")),
            (PRINTING, Change("Copies\", optional = true, default = 2", "Copies\"")),
            (PRINTING, Change("arguments = {}", "arguments = { copies = 2 }")),
        ],
    ),
    (
        "the_target_argument_is_the_resources_identifier",
        &[(PRINTERS, Change("printer_id = { type = \"PrinterId\"", "printer_id = { type = \"Note\""))],
    ),
    ("a_task_needs_all_of_its_terms", &[(PRINTING, Change("deadline_seconds = 30\n", ""))]),
    ("cases_are_total", &[(PRINTING, Change("case.draft = { idempotent = true }\n", ""))]),
    ("tasks_need_a_tool_that_reads_them", &[(JOBS, Write(FAX))]),
    ("what_must_not_repeat_needs_a_baseline", &[(SERVICE, Change("baseline = true", "baseline = false"))]),
];
