-- What a link in the text of memory means, now that its note goes by another name than the one written. No reference to the
-- owner: who was deleted may come back by an undo, and ids are never given twice.
CREATE TABLE note_tie (
    kind TEXT NOT NULL CHECK (kind IN ('entity', 'observation')),
    owner INTEGER NOT NULL,
    target TEXT NOT NULL,
    path TEXT NOT NULL,
    PRIMARY KEY (kind, owner, target)
) STRICT, WITHOUT ROWID;
CREATE INDEX note_tie_by_path ON note_tie (path);

-- Texts with a link that were replaced or deleted: when a note is renamed, they are tied too, for they may come back.
CREATE INDEX change_step_linking ON change_step (change, position) WHERE instr(before, '[[') > 0;
