//! Mistakes in texts for agents: too long, wrong, or not meant for their readers.

use super::Edit::{self, Append, Change};
use super::{ERRORS, JOBS, PRINTERS, RESERVED, SERVICE, TRAYS, TYPES};

/// Each case: the expected behaviour, and the edits that provoke it.
pub(super) const CASES: &[(&str, &[(&str, Edit)])] = &[
    (
        "an_error_of_the_service_has_no_code_of_the_framework_unless_it_plays_its_role",
        &[(
            ERRORS,
            Append(
                "[error.overloaded]\nretryable = false\nhttp = 409\nmeaning = \"The oven is full.\"\nremedy = \"Take something out.\"\n",
            ),
        )],
    ),
    (
        "a_tool_that_needs_a_capability_has_a_result_that_shows_it",
        &[(
            TYPES,
            Change(
                "fields.capabilities = { type = \"TrayCapabilities\", doc = \"What can be done with it at present.\" }\n",
                "",
            ),
        )],
    ),
    (
        "an_example_with_several_wrong_values_shows_all_of_them",
        &[(PRINTERS, Change("{ paper = true }", "{ paper = 1, rollers = 2 }, size = 3"))],
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
    ("a_limit_of_readers_is_at_least_1", &[(SERVICE, Change("[text]", "[readers]\nlist = 0\n\n[text]"))]),
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
        ],
    ),
    (
        "a_text_of_two_lines_or_with_markup_or_unseen_characters_is_no_plain_text",
        &[
            (SERVICE, Change("doc = \"Look at printers.\"", "doc = \"\"\"Look at\nprinters.\"\"\"")),
            (SERVICE, Change("doc = \"Print.\"", "doc = \"Print <b>boldly</b>.\"")),
            (SERVICE, Change("doc = \"Service printers.\"", "doc = \"Service\u{200b} printers.\"")),
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
        "what_no_platform_reports_is_shown_with_what_was_meant",
        &[(SERVICE, Change("reported.not_sent =", "reported.not_send ="))],
    ),
    (
        "a_retryable_error_says_after_how_many_seconds",
        &[(
            ERRORS,
            Append("[error.no_paper]\nretryable = true\nhttp = 503\nmeaning = \"No paper.\"\nremedy = \"Wait.\"\n"),
        )],
    ),
    (
        "a_number_does_not_take_the_name_of_what_the_framework_fills_in",
        &[(SERVICE, Change("tray_holds = 500", "tray_holds = 500\ntask_id = 7\nwait_seconds = 7"))],
    ),
    (
        "a_placeholder_that_is_not_closed_or_not_there_in_this_text_is_shown",
        &[
            (SERVICE, Change("next_step = \"Go on.\"", "next_step = \"Collect {resource it.\"")),
            (
                SERVICE,
                Change(
                    "[phrase]",
                    "[phrase]\nneeds = \"Needs {permission} {final}.\"\nfailures = \"Fails with {final}.\"",
                ),
            ),
            (
                ERRORS,
                Change("remedy = \"Pull it out.\"", "remedy = \"Pull {task_id} out after {retry_after_seconds} s.\""),
            ),
        ],
    ),
    (
        "what_others_wrote_enters_no_remedy",
        &[
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
        "a_backtick_that_is_not_closed_is_shown",
        &[(SERVICE, Change("Decide by `capabilities`.", "Decide by `capabilities."))],
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
        "the_target_of_a_task_is_not_named_as_a_field_of_its_answers",
        &[
            (TRAYS, Change("{tray_id}", "{next_step}")),
            (TRAYS, Change("arg = \"tray_id\", requires", "arg = \"next_step\", requires")),
            (
                TRAYS,
                Change(
                    "tray_id = { type = \"TrayId\", doc = \"The tray.\" }\nsheets",
                    "next_step = { type = \"TrayId\", doc = \"The tray.\" }\nsheets",
                ),
            ),
            (TRAYS, Change("tray_id = \"p-1\", sheets", "next_step = \"p-1\", sheets")),
        ],
    ),
    (
        "a_step_that_some_readers_of_a_task_cannot_take_is_none",
        &[
            (
                SERVICE,
                Change(
                    "next_step = \"Look at the printer with get_printer or at the tray with get_tray.\"",
                    "next_step = \"Call clean_rollers.\"\nreported.no_answer = \"Nobody knows.\"",
                ),
            ),
            (SERVICE, Change("reported.not_sent = \"Nothing was done.", "reported.not_sent = \"Call fill_tray.\"")),
        ],
    ),
];
