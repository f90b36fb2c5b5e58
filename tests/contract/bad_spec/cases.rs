//! Every mistake: the edit of the print shop's copy, under the name of the behaviour that a
//! maintainer then sees.

use super::Edit::{self, Append, Change, Remove, Write};
use super::{ERRORS, FLOOR, JOBS, PRINTERS, PRINTING, RESERVED, SERVICE, TRAYS, TYPES};

/// The list of tools in the print shop's contract.
const TOOLS: &str = "tools = [\"printers\", \"printing\", \"trays\", \"floor\", \"jobs\"]";

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
pub(super) const CASES: &[(&str, &[(&str, Edit)])] = &[
    // Files, syntax, shape.
    ("a_missing_file_is_named_and_nothing_else", &[(SERVICE, Remove)]),
    ("a_missing_types_file_makes_no_type_unknown", &[(TYPES, Remove)]),
    ("broken_syntax_is_shown_where_it_breaks", &[(SERVICE, Change("baseline = true", "baseline = "))]),
    ("broken_syntax_makes_nothing_unknown", &[(TYPES, Change("[type.Copies]", "[type.Copies"))]),
    (
        "several_unknown_keys_of_one_table_all_show",
        &[
            (PRINTING, Change("[tool.task]\nprobe =", "[tool.task]\nprob =")),
            (PRINTING, Change("settle_seconds = 5", "setle_seconds = 5\ncolour = \"blue\"")),
        ],
    ),
    ("a_file_that_is_not_read_is_named", &[("error.toml", Write("[error.lost]\n")), ("notes.toml", Write("x = 1\n"))]),
    (
        "an_unknown_table_is_shown_with_the_one_that_was_meant",
        &[(SERVICE, Append("[permissions.fax]\ndoc = \"Fax.\"\n"))],
    ),
    (
        "two_mistakes_in_one_tool_both_show",
        &[
            (PRINTERS, Change("permission = \"look\"", "permision = \"lok\"")),
            (PRINTERS, Change("result = \"Printer\"", "result = \"Painter\"")),
        ],
    ),
    (
        "all_missing_keys_of_a_tool_show",
        &[(PRINTERS, Change("summary = \"Looks at a printer.\"\nuse_when = \"before you print.\"\n", ""))],
    ),
    (
        "all_values_of_a_wrong_type_show",
        &[
            (PRINTING, Change("settle_seconds = 5", "settle_seconds = \"5\"")),
            (PRINTING, Change("deadline_seconds = 30", "deadline_seconds = -1")),
        ],
    ),
    ("an_unknown_effect_lists_the_known_ones", &[(PRINTERS, Change("effect = \"read\"", "effect = \"reed\""))]),
    (
        "a_missing_table_is_named",
        &[
            (
                SERVICE,
                Change("[service]\nname = \"service-printshop\"\ntitle = \"Print shop\"\nversion = \"1.0.0\"\n", ""),
            ),
            (
                SERVICE,
                Change(
                    "doc = \"A print shop with printers that can be looked at and printed on. list_machines shows what there is.\"\n",
                    "",
                ),
            ),
            (SERVICE, Change("tools = [\"printers\", \"printing\", \"trays\", \"floor\", \"jobs\"]\n", "")),
        ],
    ),
    (
        "a_type_declared_twice_is_shown_at_the_second",
        &[(TYPES, Append("[type.Mode]\nkind = \"enum\"\ndoc = \"Again.\"\n"))],
    ),
    (
        "a_file_of_comments_declares_no_tool",
        &[("tools/faxing.toml", Write("# Nothing yet.\n")), (SERVICE, Change("\"jobs\"]", "\"jobs\", \"faxing\"]"))],
    ),
    (
        "a_contract_without_tools_is_none",
        &[
            (PRINTERS, Remove),
            (PRINTING, Remove),
            (TRAYS, Remove),
            (FLOOR, Remove),
            (JOBS, Remove),
            (SERVICE, Change(TOOLS, "tools = []")),
        ],
    ),
    ("a_file_that_is_not_listed_is_shown_with_the_line_to_write", &[("tools/faxing.toml", Write(FAX))]),
    ("a_listed_file_that_is_missing_is_shown_with_the_line_to_write", &[(JOBS, Remove)]),
    ("a_file_listed_by_nearly_its_name_is_one_mistake", &[(SERVICE, Change("\"printers\"", "\"printer\""))]),
    ("a_file_listed_twice_is_shown", &[(SERVICE, Change("\"jobs\"]", "\"jobs\", \"printers\"]"))]),
    (
        "a_number_out_of_range_is_shown_where_it_stands",
        &[(SERVICE, Change("poll_interval_seconds = 15", "poll_interval_seconds = 5000000000"))],
    ),
    (
        "a_time_to_hold_or_to_wait_beyond_that_of_a_call_is_refused",
        &[(SERVICE, Change("[limits]\n", "[limits]\nhold_seconds = 0\nwait_seconds = 51\n"))],
    ),
    (
        "a_revision_that_the_framework_does_not_speak_is_shown_with_those_that_it_does",
        &[(SERVICE, Change("\"2026-07-28\"", "\"2024-11-05\""))],
    ),
    ("a_contract_that_does_not_serve_the_fallback_is_refused", &[(SERVICE, Change(", \"2025-03-26\"", ""))]),
    (
        "a_tool_of_a_wrong_shape_hides_no_other",
        &[
            (PRINTING, Change("effect = \"issue\"", "effect = 1")),
            (PRINTING, Change("requires = \"paper\"", "requires = \"papers\"")),
        ],
    ),
    (
        "an_error_of_a_wrong_shape_is_not_unknown",
        &[(ERRORS, Change("[error.out_of_ink]\nretryable = ", "[error.out_of_ink]\nretryable = 1 #"))],
    ),
    // Names.
    ("a_tool_name_in_capitals_is_unusable", &[(PRINTERS, Change("\"get_printer\"", "\"getPrinter\""))]),
    ("a_keyword_is_unusable_as_an_argument", &[(PRINTERS, Change("words = {", "move = {"))]),
    (
        "a_type_in_lower_case_is_unusable",
        &[(TYPES, Append("[type.nib]\nkind = \"integer\"\nmin = 1\nmax = 2\ndoc = \"Nib.\"\n"))],
    ),
    (
        "a_file_name_must_be_a_module_name",
        &[("tools/my-fax.toml", Write(FAX)), (SERVICE, Change("\"jobs\"]", "\"jobs\", \"my-fax\"]"))],
    ),
    ("a_tool_declared_twice_names_the_first", &[(PRINTING, Change("\"open_panel\"", "\"get_printer\""))]),
    (
        "two_tools_that_are_one_in_rust_are_refused",
        &[
            (PRINTING, Change("\"open_panel\"", "\"print_page1\"")),
            (PRINTING, Change("\"print_page\"", "\"print_page_1\"")),
        ],
    ),
    (
        "two_enum_values_that_are_one_in_rust_are_refused",
        &[(TYPES, Change("values.fine =", "values.a1 = \"A.\"\nvalues.a_1 = \"A.\"\nvalues.fine ="))],
    ),
    (
        "an_enum_value_with_two_underscores_is_unusable",
        &[(TYPES, Change("values.fine =", "values.a__b = \"A.\"\nvalues.fine ="))],
    ),
    (
        "a_type_named_as_rusts_own_is_refused",
        &[(
            TYPES,
            Append(
                "[type.String]\nkind = \"integer\"\nmin = 1\nmax = 2\ndoc = \"Nib.\"\n[type.Option]\nkind = \"integer\"\nmin = 1\nmax = 2\ndoc = \"Nib.\"\n",
            ),
        )],
    ),
    (
        "a_type_named_as_a_part_of_the_contract_is_refused",
        &[(TYPES, Change("[type.Panel]", "[type.Command]")), (PRINTING, Change("\"Panel\"", "\"Command\""))],
    ),
    (
        "a_type_named_as_one_of_the_framework_is_refused",
        &[(
            TYPES,
            Append(
                "[type.TaskStatus]\nkind = \"enum\"\ndoc = \"State.\"\nvalues.done = \"Done.\"\n[type.Evidence]\nkind = \"integer\"\nmin = 1\nmax = 2\ndoc = \"E.\"\n[type.Task]\nkind = \"integer\"\nmin = 1\nmax = 2\ndoc = \"T.\"\n",
            ),
        )],
    ),
    (
        "a_type_named_as_a_tools_arguments_is_refused",
        &[(TYPES, Append("[type.GetPrinterArgs]\nkind = \"integer\"\nmin = 1\nmax = 2\ndoc = \"Nib.\"\n"))],
    ),
    (
        "a_type_that_a_resource_brings_is_refused",
        &[(TYPES, Append("[type.PrinterCapability]\nkind = \"integer\"\nmin = 1\nmax = 2\ndoc = \"Nib.\"\n"))],
    ),
    (
        "a_resource_named_as_a_handlers_parameter_is_refused",
        &[(SERVICE, Append("[resource.args]\nid = \"Note\"\ndoc = \"Args.\"\n"))],
    ),
    (
        "two_resources_do_not_share_the_type_of_their_ids",
        &[(SERVICE, Append("[resource.bulb]\nid = \"PrinterId\"\ndoc = \"A bulb.\"\n"))],
    ),
    (
        "broken_syntax_hides_what_the_parser_guesses_of_the_same_file",
        &[(TYPES, Change("{ type = \"PrinterId\", doc", "{ type = \"PrinterId\" doc"))],
    ),
    (
        "a_resource_named_as_a_command_of_the_program_is_refused",
        &[(SERVICE, Append("[resource.task]\nid = \"Note\"\ndoc = \"A task.\"\n"))],
    ),
    (
        "an_error_field_that_every_error_carries_is_refused",
        &[(ERRORS, Append("fields.message = { type = \"string\", ours = true, doc = \"Again.\" }\n"))],
    ),
    (
        "the_derived_argument_is_not_written_down",
        &[(
            PRINTING,
            Change("mode = { type", "idempotency_key = { type = \"string\", doc = \"Key.\" }\nmode = { type"),
        )],
    ),
    (
        "an_error_named_twice_by_a_tool_is_refused",
        &[(PRINTING, Change("[\"out_of_ink\"]", "[\"out_of_ink\", \"out_of_ink\"]"))],
    ),
    ("a_reserved_tool_never_returns", &[(PRINTING, Change("\"print_page\"", "\"fax_page\""))]),
    (
        "a_reserved_error_never_returns",
        &[(
            ERRORS,
            Append(
                "[error.paper_jam]\nretryable = true\nretry_after_seconds = 5\nhttp = 500\nmeaning = \"Jam.\"\nremedy = \"Pull.\"\n",
            ),
        )],
    ),
    ("a_retired_value_never_returns", &[(RESERVED, Append("values = [\"fine\", \"rollers\", \"matt\"]\n"))]),
    (
        "a_long_tool_name_is_refused",
        &[(PRINTERS, Change("\"get_printer\"", "\"get_printer_and_everything_that_is_on_it\""))],
    ),
    // References must resolve.
    (
        "an_unknown_permission_is_shown_with_the_one_that_was_meant",
        &[(PRINTERS, Change("permission = \"look\"", "permission = \"lok\""))],
    ),
    (
        "an_unknown_implied_permission_is_shown",
        &[(SERVICE, Change("implies = [\"look\"]", "implies = [\"peek_inside\"]"))],
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
        "an_unknown_type_of_a_field_is_shown_and_nothing_that_follows_from_it",
        &[(TYPES, Change("type = \"PrinterCapabilities\"", "type = \"Abilities\""))],
    ),
    ("an_unknown_identifier_type_is_shown_once", &[(SERVICE, Change("id = \"PrinterId\"", "id = \"PrintId\""))]),
    ("an_identifier_is_a_string", &[(SERVICE, Change("id = \"PrinterId\"", "id = \"Copies\""))]),
    ("a_state_is_an_enum", &[(SERVICE, Change("id = \"PrinterId\"", "id = \"PrinterId\"\nstate = \"Copies\""))]),
    (
        "an_unknown_error_is_shown_with_the_one_that_was_meant",
        &[(PRINTING, Change("[\"out_of_ink\"]", "[\"out_of_inc\"]"))],
    ),
    (
        "an_unknown_role_is_shown_with_the_one_that_was_meant",
        &[(ERRORS, Change("role = \"target_busy\"", "role = \"target_bussy\""))],
    ),
    (
        "an_unknown_target_argument_is_shown_with_the_one_that_was_meant",
        &[(PRINTERS, Change("arg = \"printer_id\"", "arg = \"printer\""))],
    ),
    (
        "an_unknown_selecting_argument_is_shown_with_the_one_that_was_meant",
        &[(PRINTING, Change("select = \"mode\"", "select = \"mod\""))],
    ),
    (
        "an_unknown_task_state_is_shown_with_the_one_that_was_meant",
        &[(SERVICE, Change("[state.timeout]", "[state.time_out]"))],
    ),
    ("an_unknown_usual_end_lists_the_terminal_states", &[(PRINTING, Change("[\"success\"]", "[\"dispatched\"]"))]),
    // The contract as a whole.
    (
        "an_error_without_a_role_has_no_defaults",
        &[
            (ERRORS, Change("meaning = \"A colour is used up.\"\n", "")),
            (ERRORS, Change("role = \"target_busy\"\n", "")),
        ],
    ),
    (
        "a_code_is_no_other_roles",
        &[
            (ERRORS, Change("role = \"not_found\"", "role = \"target_busy\"")),
            (
                ERRORS,
                Change(
                    "role = \"target_busy\"\nmeaning = \"Printer",
                    "retryable = true\nretry_after_seconds = 5\nhttp = 409\nmeaning = \"Printer",
                ),
            ),
        ],
    ),
    ("a_role_is_played_once", &[(ERRORS, Change("role = \"target_busy\"", "role = \"not_found\""))]),
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
        "an_http_twin_belongs_to_one_tool",
        &[(PRINTING, Change("POST /v1/printers/{printer_id}/pages", "POST /v1/panels"))],
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
    // Types and fields.
    (
        "bounds_leave_something_to_choose",
        &[
            (TYPES, Change("max_length = 8\n", "")),
            (TYPES, Change("max = 99", "max = 0")),
            (TYPES, Change("charset = \"a-z0-9\"", "charset = \"z-a\"")),
            (TYPES, Change("values.draft = \"In grey.\"\nvalues.fine = \"In colour.\"", "min = 1")),
        ],
    ),
    ("the_default_must_be_a_value_of_the_type", &[(PRINTING, Change("default = 2", "default = 100"))]),
    (
        "flags_fit_the_place_of_a_field",
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
        "a_mark_fits_the_text_that_it_is_on",
        &[
            (TYPES, Change("type = \"Copies\", doc", "type = \"Copies\", ours = true, doc")),
            (TYPES, Change("type = \"string\", untrusted = true", "type = \"string\", untrusted = true, ours = true")),
            (PRINTERS, Change("words = { type = \"string\"", "words = { type = \"string\", ours = true")),
            (PRINTERS, Change("weight = { type = \"integer\"", "weight = { type = \"url\"")),
            (PRINTERS, Change("urgent = { type = \"boolean\"", "urgent = { type = \"boolean\", told = true")),
        ],
    ),
    ("an_object_is_no_argument", &[(PRINTERS, Change("type = \"[Note]\"", "type = \"[Panel]\""))]),
    (
        "a_field_that_may_be_null_says_what_null_means",
        &[(TYPES, Change("Last service; null if never.", "Last service."))],
    ),
    // Tools.
    ("a_result_must_be_an_object", &[(PRINTERS, Change("result = \"Printer\"", "result = \"Mode\""))]),
    ("a_tool_that_is_no_task_names_its_result", &[(PRINTERS, Change("result = \"Printer\"\n", ""))]),
    (
        "an_example_is_a_call_that_works",
        &[(PRINTING, Change("{ printer_id = \"p-1\", mode = \"draft\" }", "{ printer_id = \"q-1\" }"))],
    ),
    ("an_example_shows_members_of_the_result", &[(PRINTERS, Change("{ paper = true }", "{ paper = 1 }"))]),
    (
        "an_http_twin_is_a_method_and_a_path",
        &[(PRINTERS, Change("GET /v1/printers/{printer_id}", "GET /v1/printers/{printer_id"))],
    ),
    (
        "the_document_of_the_twins_has_its_path_to_itself",
        &[(PRINTERS, Change("GET /v1/printers/{printer_id}", "GET /v1/openapi.json"))],
    ),
    (
        "the_method_of_an_http_twin_fits_the_effect",
        &[
            (PRINTERS, Change("GET /v1/printers/{printer_id}", "POST /v1/printers/{printer_id}")),
            (PRINTING, Change("POST /v1/panels", "GET /v1/panels")),
            (PRINTING, Change("POST /v1/printers/{printer_id}/pages", "PATCH /v1/printers/{printer_id}/pages")),
            (JOBS, Change("GET /v1/jobs/{task_id}", "DELETE /v1/jobs/{task_id}")),
        ],
    ),
    (
        "a_query_holds_no_list_and_no_secret",
        &[
            (PRINTERS, Change("words = { type = \"string\"", "words = { type = \"[Note]\"")),
            (PRINTING, Change("POST /v1/printers/{printer_id}/pages", "DELETE /v1/printers/{printer_id}/pages")),
        ],
    ),
    (
        "a_path_holds_no_list_no_secret_and_nothing_twice",
        &[
            (JOBS, Append(FAX)),
            (
                JOBS,
                Append(
                    "[tool.args]\npages = { type = \"[Copies]\", doc = \"Pages.\" }\npin = { type = \"string\", secret = true, doc = \"Pin.\" }\ntray = { type = \"TrayId\", doc = \"Tray.\" }\n",
                ),
            ),
            (JOBS, Change("/v1/faxes", "/v1/faxes/{pages}/{pin}/{tray}/{tray}")),
        ],
    ),
    ("a_path_parameter_is_an_argument", &[(PRINTERS, Change("{printer_id}\"", "{printer}\""))]),
    (
        "a_path_parameter_is_required",
        &[(PRINTERS, Change("printers/{printer_id}\"", "printers/{printer_id}/{words}\""))],
    ),
    (
        "the_target_argument_is_the_resources_identifier",
        &[(PRINTERS, Change("printer_id = { type = \"PrinterId\"", "printer_id = { type = \"Note\""))],
    ),
    ("a_task_needs_its_terms", &[(PRINTERS, Change("effect = \"read\"", "effect = \"task\""))]),
    ("a_task_needs_all_of_its_terms", &[(PRINTING, Change("deadline_seconds = 30\n", ""))]),
    ("a_task_settles_before_its_deadline", &[(PRINTING, Change("settle_seconds = 10", "settle_seconds = 30"))]),
    ("only_a_task_has_terms", &[(PRINTING, Change("effect = \"task\"", "effect = \"issue\"\nresult = \"Panel\""))]),
    ("a_case_for_no_value_is_shown_with_the_one_that_was_meant", &[(PRINTING, Change("case.draft", "case.drft"))]),
    ("cases_are_total", &[(PRINTING, Change("case.draft = { idempotent = true }\n", ""))]),
    ("tasks_need_a_tool_that_reads_them", &[(JOBS, Write(FAX))]),
    (
        "tasks_are_read_by_one_tool",
        &[(
            JOBS,
            Append(
                "[[tool]]\nname = \"get_page\"\npermission = \"look\"\neffect = \"read_task\"\nhttp = \"GET /v1/p/{task_id}\"\n",
            ),
        )],
    ),
    (
        "what_is_derived_of_the_tool_that_reads_tasks_is_not_written_down",
        &[(
            JOBS,
            Append(
                "target = { resource = \"printer\", arg = \"printer_id\" }\nresult = \"Panel\"\nerrors = [\"jammed\"]\n[tool.args]\npin = { type = \"string\", doc = \"Pin.\" }\n",
            ),
        )],
    ),
    (
        "tasks_on_two_resources_name_them_by_two_arguments",
        &[
            (TRAYS, Change("{tray_id}", "{printer_id}")),
            (TRAYS, Change("\"tray_id\", requires", "\"printer_id\", requires")),
            (
                TRAYS,
                Change(
                    "tray_id = { type = \"TrayId\", doc = \"The tray.\" }\nsheets",
                    "printer_id = { type = \"TrayId\", doc = \"The tray.\" }\nsheets",
                ),
            ),
            (TRAYS, Change("tray_id = \"p-1\", sheets", "printer_id = \"p-1\", sheets")),
        ],
    ),
    ("what_must_not_repeat_needs_a_baseline", &[(SERVICE, Change("baseline = true", "baseline = false"))]),
    // All kinds together.
    (
        "mistakes_in_three_files_are_one_report",
        &[
            (SERVICE, Change("implies = [\"look\"]", "implies = [\"lock\"]")),
            (TYPES, Change("type = \"[Mode]\"", "type = \"[Mood]\"")),
            (PRINTING, Change("[\"out_of_ink\"]", "[\"out_of_inc\"]")),
        ],
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
