-- Tell this file from every other one, and its present state from every earlier one: another program may copy a file over it
-- while it is open. Compared are the file alone and the file with its log, so what the file alone must show is one row on a
-- page of its own. The id is never written again: it is in no log, so whoever replaces the file replaces it.
CREATE TABLE file_id (id INTEGER PRIMARY KEY) STRICT;
INSERT INTO file_id VALUES (random());

CREATE TABLE last_write (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, mark INTEGER NOT NULL) STRICT;
INSERT INTO last_write VALUES (1, 1, random());

-- Every write since the one that the file alone shows. Number 0 is a file that has none of these tables yet.
CREATE TABLE write_mark (number INTEGER PRIMARY KEY, mark INTEGER NOT NULL) STRICT;
INSERT INTO write_mark VALUES (0, 0);
INSERT INTO write_mark SELECT number, mark FROM last_write;
