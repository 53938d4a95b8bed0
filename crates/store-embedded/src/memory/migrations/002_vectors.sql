-- Meanings, a byte for each number. They can be computed again, so they are not logged.
CREATE TABLE entity_vector (
    space TEXT NOT NULL,
    entity INTEGER NOT NULL REFERENCES entity (id) ON DELETE CASCADE,
    text_hash INTEGER NOT NULL,
    scale REAL NOT NULL,
    codes BLOB NOT NULL,
    PRIMARY KEY (space, entity)
) STRICT, WITHOUT ROWID;
CREATE INDEX entity_vector_by_owner ON entity_vector (entity);

CREATE TABLE observation_vector (
    space TEXT NOT NULL,
    observation INTEGER NOT NULL REFERENCES observation (id) ON DELETE CASCADE,
    text_hash INTEGER NOT NULL,
    scale REAL NOT NULL,
    codes BLOB NOT NULL,
    PRIMARY KEY (space, observation)
) STRICT, WITHOUT ROWID;
CREATE INDEX observation_vector_by_owner ON observation_vector (observation);
