-- A database as the program before layout 5 left it when it was killed: 4.
PRAGMA foreign_keys = OFF;
PRAGMA user_version = 4;
BEGIN TRANSACTION;
CREATE TABLE api_key (
    id                TEXT    NOT NULL PRIMARY KEY,
    application       TEXT    NOT NULL REFERENCES application (id),
    created_at        INTEGER NOT NULL,
    expires_at        INTEGER,
    latest_verifier   BLOB    CHECK (length(latest_verifier) = 32),
    latest_sealed     BLOB    CHECK ((latest_sealed IS NULL) = (latest_verifier IS NULL)),
    previous_verifier BLOB    CHECK (length(previous_verifier) = 32),
    previous_sealed   BLOB    CHECK ((previous_sealed IS NULL) = (previous_verifier IS NULL))
) STRICT, WITHOUT ROWID;
INSERT INTO "api_key" VALUES('cpk_3aef5a774725651c','app_2aefb4b8a40cc960',1795301174354,NULL,X'ABA0176A5F7DEF850DCA7F34E45D3E768E43CD408DB3DBD7F024CC176956CA9E',X'7F449BBFD7C029114FE7B51279EBB1E0F044087478A16EE617557407A7336D3F02CB4ECD7A836BDB0969FF80B04DB2836B39465642524BB4B6AEC07A7DA14D169466764CD1B0A6E7A61B18449CBB07B98E536F2141BFCBB4E967E3839B4C08B515489C57E407A02698C1FFCD',NULL,NULL);
INSERT INTO "api_key" VALUES('cpk_ea4141e15bb5a4a6','app_88f3e58a9b9f144b',1795301174353,NULL,X'2E750203560B020E4AB0DE72D4D645761F23604D2749D928E7F56A8EA3463C99',X'41FC89E540008DE272D43A1D0BC7788EDE5AE9DCD05EF54B00F267E21A9FF67DAAF458C359DE670A444F5410AC0676F836F833F57C8EB3FF108BA0F887DF4DE6363ABD54511FD31C7892E1B39EC3CCA4CCB550E60DB6E173970DB9DF4F565E3C476E701EBC3D6D9B35C92607',NULL,NULL);
INSERT INTO "api_key" VALUES('cpk_ece8f2b867142d01','app_7e46b33b3fe65621',1795301175838,NULL,X'5B209BA91A1D2FA17D891549712475B401450A1E798D9CB3D37503BFFE3C692D',X'04DF100408B545A04E41E84E07D613160378F0EC2CEC7ABAD23629074B260571D86874CD9381DDC1BB091D994E8C48B0C47828222C727B3839CF210C8E96630C33DE5733A5454A1BD6579088F949DBDA00AE360203B22A9E4B4C333A274097B98DEEF81DC1E6B79F1E720708',NULL,NULL);
CREATE TABLE application (
    -- The order in which they were made.
    number              INTEGER PRIMARY KEY,
    id                  TEXT    NOT NULL UNIQUE,
    name                TEXT    NOT NULL UNIQUE,
    -- Names, as a JSON array.
    permissions         TEXT    NOT NULL,
    requests_per_minute INTEGER NOT NULL,
    -- 1: every target, those to come included; 0: those in application_target.
    every_target        INTEGER NOT NULL CHECK (every_target IN (0, 1)),
    created_at          INTEGER NOT NULL
) STRICT;
INSERT INTO "application" VALUES(1,'app_88f3e58a9b9f144b','demo','["device","stream"]',300,1,1795301174352);
INSERT INTO "application" VALUES(2,'app_2aefb4b8a40cc960','demo-read','["device_read"]',300,1,1795301174353);
INSERT INTO "application" VALUES(3,'app_7e46b33b3fe65621','shop','["device"]',300,0,1795301175825);
CREATE TABLE application_target (
    application TEXT NOT NULL REFERENCES application (id),
    target      TEXT NOT NULL,
    PRIMARY KEY (application, target)
) STRICT, WITHOUT ROWID;
INSERT INTO "application_target" VALUES('app_7e46b33b3fe65621','phone-0000001');
INSERT INTO "application_target" VALUES('app_7e46b33b3fe65621','phone-0000002');
CREATE TABLE ledger (
    number      INTEGER PRIMARY KEY,
    task_id     BLOB    NOT NULL,
    application TEXT    NOT NULL,
    kind        TEXT    NOT NULL CHECK (kind IN ('charge', 'reversal', 'refund')),
    at          INTEGER NOT NULL,
    UNIQUE (task_id, kind)
) STRICT;
INSERT INTO "ledger" VALUES(1,X'01A20049F24DE27E488D8C1FFC7E7461','app_88f3e58a9b9f144b','charge',1795301175894);
INSERT INTO "ledger" VALUES(2,X'01A2004A40905EE36FE87C43C4FE53FA','app_88f3e58a9b9f144b','charge',1795301195921);
CREATE TABLE settling (
    resource   TEXT    NOT NULL,
    target     TEXT    NOT NULL,
    since      INTEGER NOT NULL,
    until      INTEGER NOT NULL,
    PRIMARY KEY (target, resource)
) STRICT, WITHOUT ROWID;
INSERT INTO "settling" VALUES('device','phone-0000001',1795301181898,1795301196897);
CREATE TABLE task (
    id          BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    application TEXT    NOT NULL,
    fingerprint BLOB    NOT NULL CHECK (length(fingerprint) = 32),
    tool        TEXT    NOT NULL,
    resource    TEXT    NOT NULL,
    target      TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    terminal    INTEGER NOT NULL CHECK (terminal = (status IS NOT NULL)),
    status      TEXT,
    wake_at     INTEGER,
    finished_at INTEGER,
    -- The machine's task as JSON; the columns above repeat of it what is searched for.
    state       TEXT    NOT NULL,
    sealed      BLOB    CHECK (terminal = 0 OR sealed IS NULL)
, idem_key TEXT) STRICT;
INSERT INTO "task" VALUES(X'01A20049F24DE27E488D8C1FFC7E7461','app_88f3e58a9b9f144b',X'41F5DB4B15CAAAEF3BB7CFEBCF1B151A0A8A59D3E2D07490F1FEDF9177B18631','set_power','device','phone-0000001',1795301175885,4,1,'success',NULL,1795301181898,'{"terms":{"probe":{"name":"power_state","baseline":false},"idempotent":true,"settle_seconds":15,"deadline_seconds":60},"phase":{"done":"success"},"not_before":"2026-11-21T22:46:15.885Z","deadline_at":"2026-11-21T22:47:15.885Z","attempts":1,"send_not_after":"2026-11-21T22:46:20.894Z","left":true,"last_send_at":"2026-11-21T22:46:20.894Z","operation":"operation-0","outcome":["ok","2026-11-21T22:46:21.897Z"],"unanswered":false,"settled":{"absent":0,"unreadable":0},"reading":[{"verdict":"present","expected":"state running","observed":"state running"},"2026-11-21T22:46:21.898Z"],"finished_at":"2026-11-21T22:46:21.898Z"}',NULL,NULL);
INSERT INTO "task" VALUES(X'01A2004A40905EE36FE87C43C4FE53FA','app_88f3e58a9b9f144b',X'49B86589E6BBCF825473C14E72A3080C40E2B045E9BCE87C845559009D1DE013','set_proxy','device','phone-0000013',1795301195920,3,0,NULL,1795301198922,NULL,'{"terms":{"probe":{"name":"exit_ip","baseline":true},"idempotent":true,"settle_seconds":15,"deadline_seconds":60},"phase":"polling","not_before":"2026-11-21T22:46:35.920Z","deadline_at":"2026-11-21T22:47:35.920Z","wake_at":"2026-11-21T22:46:38.922Z","attempts":1,"baseline":"2001:db8::d","send_not_after":"2026-11-21T22:46:40.921Z","left":true,"last_send_at":"2026-11-21T22:46:40.921Z","operation":"operation-1","unanswered":false,"settled":{"absent":0,"unreadable":0}}',X'BEB7FEBC791B67D1F69CA67BAC2AE430563A599593214A792A2717D4475661CABB9E9BAF73488CFB2CBC4AEE9E35AD61361A0D77810D5E1E3B57C78C942EA93AEBF5EE9AFCE515CDD24469EF89B63BC5D9BA21DF4DB65C5852EF62558CF3C9571899629B6E004CD213C505FD6E35438BA2A0AD267E09397DE7E473F74A0888466E07307D8F19289A41A4D97247A02F4C00C7C28E5422',NULL);
CREATE TABLE task_event (
    task_id BLOB    NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    version INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    phase   TEXT    NOT NULL,
    what    TEXT    NOT NULL,
    PRIMARY KEY (task_id, version)
) STRICT, WITHOUT ROWID;
INSERT INTO "task_event" VALUES(X'01A20049F24DE27E488D8C1FFC7E7461',1,1795301175894,'sending','due');
INSERT INTO "task_event" VALUES(X'01A20049F24DE27E488D8C1FFC7E7461',2,1795301175895,'polling','send: the upstream works on it as operation-0');
INSERT INTO "task_event" VALUES(X'01A20049F24DE27E488D8C1FFC7E7461',3,1795301181897,'verifying','looked up: the upstream says that it is done');
INSERT INTO "task_event" VALUES(X'01A20049F24DE27E488D8C1FFC7E7461',4,1795301181898,'success','read: present; expected: state running; observed: state running');
INSERT INTO "task_event" VALUES(X'01A2004A40905EE36FE87C43C4FE53FA',1,1795301195921,'baseline','due');
INSERT INTO "task_event" VALUES(X'01A2004A40905EE36FE87C43C4FE53FA',2,1795301195921,'sending','read before the send: 2001:db8::d');
INSERT INTO "task_event" VALUES(X'01A2004A40905EE36FE87C43C4FE53FA',3,1795301195922,'polling','send: the upstream works on it as operation-1');
CREATE INDEX ix_task_finished ON task (finished_at, id) WHERE terminal = 1;
CREATE INDEX ix_task_failed_silent ON task (id) WHERE status = 'failed_silent';
CREATE INDEX ix_ledger_refund ON ledger (task_id) WHERE kind = 'refund';
CREATE UNIQUE INDEX ux_task_inflight ON task (application, idem_key) WHERE terminal = 0 AND idem_key IS NOT NULL;
CREATE INDEX ix_task_inflight ON task (id) WHERE terminal = 0;
COMMIT;
