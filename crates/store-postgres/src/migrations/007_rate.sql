-- Calls a second that each server accepts for a graph; no limit where there is none.
ALTER TABLE graph ADD COLUMN max_rate BIGINT CHECK (max_rate > 0);

-- Followers of the feed need the last change of each path. Older ones are deleted with each write from now on.
DELETE FROM note_change older USING note_change newer
    WHERE older.graph = newer.graph AND older.path = newer.path AND older.change < newer.change;
CREATE INDEX note_change_by_path ON note_change (graph, path);
