//! The scenarios. `server/cloudphone/src/platforms/simulator/cast.rs` describes the behaviour of
//! each phone.

use super::Scenario;
use super::Step::{self, Again, Await, Call, Cut, Fill, Mend, Pass};
use cloudphone::platforms::simulator::CAST;

const READ: &[&str] = &["device_read"];
const WRITE: &[&str] = &["device"];
const STREAM: &[&str] = &["stream"];
const ALL: &[&str] = &["device", "stream"];

/// Makes the scenario of an agent that has the whole cast and a large budget.
const fn agent(name: &'static str, permissions: &'static [&'static str], steps: &'static [Step]) -> Scenario {
    Scenario { name, permissions, phones: CAST.len() as u32, requests_per_minute: 1_000, steps }
}

/// Returns all scenarios.
pub(super) fn all() -> Vec<Scenario> {
    [READING, WRITING, ENDS, REFUSALS].concat()
}

const READING: &[Scenario] = &[
    agent(
        "a_list_is_paged_to_its_end",
        READ,
        &[
            Call("list_devices", r#"{"limit":10}"#),
            Call("list_devices", r#"{"limit":10,"cursor":"$next_cursor"}"#),
            Call("list_devices", r#"{"limit":10,"cursor":"$next_cursor"}"#),
        ],
    ),
    Scenario {
        phones: 6_000,
        ..agent(
            "a_filtered_page_is_empty_though_more_devices_are_left",
            READ,
            &[
                Call("list_devices", r#"{"state":"restarting"}"#),
                Call("list_devices", r#"{"cursor":"$next_cursor","state":"restarting"}"#),
                Call("list_devices", r#"{"state":"restarting","cursor":"$next_cursor"}"#),
                Call("list_devices", r#"{"capability":"proxy","limit":2}"#),
            ],
        )
    },
    agent(
        "a_device_is_read_that_runs_then_one_that_is_stopped_then_one_that_cannot_be_read",
        READ,
        &[
            Call("get_device", r#"{"device_id":"phone-0000001"}"#),
            Call("get_device", r#"{"device_id":"phone-0000002"}"#),
            Call("get_device", r#"{"device_id":"phone-0000004"}"#),
        ],
    ),
    Scenario {
        phones: 3,
        ..agent(
            "the_name_of_a_device_is_given_as_its_id",
            READ,
            &[
                Call("get_device", r#"{"device_id":"Phone 1"}"#),
                Call("list_devices", "{}"),
                Call("get_device", r#"{"device_id":"phone-0000001"}"#),
            ],
        )
    },
    Scenario {
        phones: 3,
        ..agent(
            "a_device_is_asked_for_that_nobody_knows",
            READ,
            &[Call("get_device", r#"{"device_id":"phone-9999999"}"#), Call("list_devices", "{}")],
        )
    },
    agent(
        "a_device_has_a_hostile_name",
        READ,
        &[
            Call("list_devices", r#"{"limit":1,"cursor":"70686f6e652d30303030303131"}"#),
            Call("get_device", r#"{"device_id":"phone-0000012"}"#),
        ],
    ),
    agent(
        "a_session_has_a_token_and_no_page_to_open",
        ALL,
        &[
            Call("create_session", r#"{"device_id":"phone-0000001","mode":"view"}"#),
            Call("create_session", r#"{"device_id":"phone-0000011"}"#),
        ],
    ),
    agent(
        "a_key_for_sessions_alone_asks_for_devices_that_cannot_have_one",
        STREAM,
        &[
            Call("create_session", r#"{"device_id":"phone-9999999"}"#),
            Call("create_session", r#"{"device_id":"Phone 1"}"#),
            Call("create_session", r#"{"device_id":"phone-0000007"}"#),
            Call("create_session", r#"{"device_id":"phone-0000002"}"#),
            Call("create_session", r#"{"device_id":"phone-0000001"}"#),
        ],
    ),
];

const WRITING: &[Scenario] = &[
    agent(
        "a_write_succeeds_and_is_awaited_as_its_answer_says",
        WRITE,
        &[
            Call(
                "set_proxy",
                r#"{"device_id":"phone-0000001","scheme":"socks5","host":"proxy.example.com","port":1080,"username":"u1","password":"p1"}"#,
            ),
            Await,
            Call("get_device", r#"{"device_id":"phone-0000001"}"#),
        ],
    ),
    agent(
        "a_write_is_polled_without_a_wait_then_with_one",
        WRITE,
        &[
            Call("set_power", r#"{"device_id":"phone-0000018","action":"shutdown"}"#),
            Call("get_task", r#"{"task_id":"$task_id"}"#),
            Again,
            Call("get_task", r#"{"task_id":"$task_id","wait_seconds":25}"#),
        ],
    ),
    agent(
        "a_second_write_meets_the_first_in_flight",
        WRITE,
        &[
            Call(
                "set_proxy",
                r#"{"device_id":"phone-0000018","scheme":"http","host":"proxy.example.com","port":8080}"#,
            ),
            Call("set_power", r#"{"device_id":"phone-0000018","action":"restart"}"#),
            Await,
            Call("set_power", r#"{"device_id":"phone-0000018","action":"restart"}"#),
            Await,
        ],
    ),
    agent(
        "an_idempotency_key_comes_again_with_the_same_arguments_then_with_others",
        WRITE,
        &[
            Call(
                "set_proxy",
                r#"{"device_id":"phone-0000001","scheme":"http","host":"proxy.example.com","port":8080,"idempotency_key":"job-1"}"#,
            ),
            Again,
            Call(
                "set_proxy",
                r#"{"device_id":"phone-0000001","scheme":"http","host":"proxy.example.com","port":9090,"idempotency_key":"job-1"}"#,
            ),
            Await,
            Call(
                "set_proxy",
                r#"{"device_id":"phone-0000001","scheme":"http","host":"proxy.example.com","port":9090,"idempotency_key":"job-2"}"#,
            ),
        ],
    ),
    Scenario {
        phones: 3,
        ..agent(
            "a_proxy_is_set_on_a_phone_that_is_stopped",
            WRITE,
            &[
                Call(
                    "set_proxy",
                    r#"{"device_id":"phone-0000002","scheme":"http","host":"proxy.example.com","port":8080}"#,
                ),
                Call("set_power", r#"{"device_id":"phone-0000002","action":"boot"}"#),
                Await,
                Call("get_device", r#"{"device_id":"phone-0000002"}"#),
                Call(
                    "set_proxy",
                    r#"{"device_id":"phone-0000002","scheme":"http","host":"proxy.example.com","port":8080}"#,
                ),
                Await,
            ],
        )
    },
    Scenario {
        phones: 3,
        ..agent(
            "the_id_of_a_task_is_lost",
            WRITE,
            &[
                Call("set_power", r#"{"device_id":"phone-0000001","action":"boot"}"#),
                Call("get_task", r#"{"task_id":"task_00000000000000000000000000000000"}"#),
                Call("get_device", r#"{"device_id":"phone-0000001"}"#),
            ],
        )
    },
];

const ENDS: &[Scenario] = &[
    agent(
        "a_phone_that_is_stopped_is_restarted",
        WRITE,
        &[Call("set_power", r#"{"device_id":"phone-0000002","action":"restart"}"#), Await],
    ),
    agent(
        "a_write_failed_and_the_platform_says_so",
        WRITE,
        &[
            Call(
                "set_proxy",
                r#"{"device_id":"phone-0000014","scheme":"http","host":"proxy.example.com","port":8080}"#,
            ),
            Await,
        ],
    ),
    agent(
        "a_write_failed_because_nothing_was_sent",
        WRITE,
        &[Call("set_power", r#"{"device_id":"phone-0000023","action":"shutdown"}"#), Await],
    ),
    agent(
        "a_write_was_reported_as_done_and_is_absent",
        WRITE,
        &[
            Call(
                "set_proxy",
                r#"{"device_id":"phone-0000013","scheme":"http","host":"proxy.example.com","port":8080}"#,
            ),
            Await,
        ],
    ),
    agent(
        "a_write_was_reported_as_done_and_nothing_can_be_measured",
        WRITE,
        &[
            Call("clear_proxy", r#"{"device_id":"phone-0000010"}"#),
            Await,
            Call("get_device", r#"{"device_id":"phone-0000010"}"#),
        ],
    ),
    agent(
        "nobody_can_tell_whether_an_unreadable_phone_booted",
        WRITE,
        &[
            Call("set_power", r#"{"device_id":"phone-0000004","action":"boot"}"#),
            Await,
            Call("get_device", r#"{"device_id":"phone-0000004"}"#),
        ],
    ),
    agent(
        "nobody_can_tell_whether_a_rotating_proxy_is_in_force",
        WRITE,
        &[
            Call(
                "set_proxy",
                r#"{"device_id":"phone-0000020","scheme":"http","host":"proxy.example.com","port":8080}"#,
            ),
            Await,
            Call("get_device", r#"{"device_id":"phone-0000020"}"#),
        ],
    ),
    agent(
        "the_platform_goes_away_while_a_write_is_under_way",
        WRITE,
        &[
            Call("set_power", r#"{"device_id":"phone-0000001","action":"restart"}"#),
            Cut,
            Await,
            Call("get_device", r#"{"device_id":"phone-0000001"}"#),
            Mend,
            Pass(5),
            Again,
        ],
    ),
];

const REFUSALS: &[Scenario] = &[
    agent(
        "calls_have_several_mistakes_at_once",
        ALL,
        &[
            Call(
                "set_proxy",
                r#"{"device_id":"Phone_1","scheme":"ftp","host":"http://proxy example","port":70000,"user":"u1","password":"p 1"}"#,
            ),
            Call("set_power", r#"{}"#),
            Call("list_devices", r#"{"limit":0,"state":"on","name":"Phone 1"}"#),
            Call("get_task", r#"{"task_id":"7","wait_seconds":60}"#),
            Call("create_session", r#"{"device_id":1,"mode":"admin"}"#),
        ],
    ),
    agent(
        "devices_are_asked_for_what_they_never_offer",
        ALL,
        &[
            Call(
                "set_proxy",
                r#"{"device_id":"phone-0000005","scheme":"http","host":"proxy.example.com","port":8080}"#,
            ),
            Call("set_power", r#"{"device_id":"phone-0000006","action":"boot"}"#),
            Call("create_session", r#"{"device_id":"phone-0000007"}"#),
            Call("set_power", r#"{"device_id":"phone-0000008","action":"restart"}"#),
            Call(
                "set_proxy",
                r#"{"device_id":"phone-0000009","scheme":"socks5","host":"proxy.example.com","port":1080}"#,
            ),
            Call("set_proxy", r#"{"device_id":"phone-0000001","scheme":"http","host":"127.0.0.1","port":8080}"#),
        ],
    ),
    agent(
        "a_key_that_may_only_read_asks_for_writes_and_sessions",
        READ,
        &[
            Call("set_power", r#"{"device_id":"phone-0000001","action":"restart"}"#),
            Call("create_session", r#"{"device_id":"phone-0000001"}"#),
        ],
    ),
    agent(
        "tools_are_called_that_are_not_there",
        READ,
        &[
            Call("mcp__phones__get_device", r#"{"device_id":"phone-0000001"}"#),
            Call("get_device", r#"{"device_id":"phone-0000001"}"#),
            Call("reboot_device", r#"{"device_id":"phone-0000001"}"#),
        ],
    ),
    Scenario {
        requests_per_minute: 3,
        ..agent(
            "the_budget_of_requests_is_spent",
            READ,
            &[
                Call("get_device", r#"{"device_id":"phone-0000010"}"#),
                Call("get_device", r#"{"device_id":"phone-0000011"}"#),
                Pass(61),
                Again,
            ],
        )
    },
    agent(
        "the_platform_cannot_be_reached",
        ALL,
        &[
            Cut,
            Call("list_devices", r#"{"limit":1}"#),
            Call("create_session", r#"{"device_id":"phone-0000001"}"#),
            Call("set_power", r#"{"device_id":"phone-0000001","action":"boot"}"#),
            Pass(5),
            Again,
            Mend,
            Pass(5),
            Again,
        ],
    ),
    Scenario {
        phones: 500,
        ..agent(
            "the_server_has_more_work_than_it_can_hold",
            WRITE,
            &[
                Fill,
                Call("set_power", r#"{"device_id":"phone-0000500","action":"boot"}"#),
                Pass(1),
                Again,
                Pass(30),
                Again,
            ],
        )
    },
];
