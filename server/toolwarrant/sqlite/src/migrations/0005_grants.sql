-- What an application sees is granted by resource and identifier: a tray and a printer may have the same one. `every_target` of
-- an application stays what it is: every target of every resource.
CREATE TABLE application_resource (
    application  TEXT    NOT NULL REFERENCES application (id),
    resource     TEXT    NOT NULL,
    -- 1: every target of the resource, those to come included; 0: those in resource_target.
    every_target INTEGER NOT NULL CHECK (every_target IN (0, 1)),
    PRIMARY KEY (application, resource)
) STRICT, WITHOUT ROWID;

CREATE TABLE resource_target (
    application TEXT NOT NULL,
    resource    TEXT NOT NULL,
    target      TEXT NOT NULL,
    PRIMARY KEY (application, resource, target),
    FOREIGN KEY (application, resource) REFERENCES application_resource (application, resource) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Until here a contract had one resource; whoever opens the database knows its name.
INSERT INTO application_resource
    SELECT DISTINCT application, (SELECT former_resource FROM temp.opening), 0 FROM application_target;
INSERT INTO resource_target
    SELECT application, (SELECT former_resource FROM temp.opening), target FROM application_target;
DROP TABLE application_target;
