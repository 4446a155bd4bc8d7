/**
 * Writes on PostgreSQL without the order that `inTransaction` gives, each with the reason why no decision can go
 * wrong by it. Most are single statements that are right by themselves: they change one row where it is still as the
 * writer believes it to be, so they and a transaction that decides by that row, and writes it, meet in the row. What is
 * not named here goes through `inTransaction`; a test compares the tables with what is really written.
 */
export const belowSerializable: readonly { what: string; tables: readonly string[]; why: string }[] = [
  {
    what: 'run events',
    tables: ['runs', 'run_frames', 'run_change_sets', 'run_evidence'],
    why: 'Frames are only added, under numbers that the row of the run gives out by compare-and-set. An ending, and an approval that a frame raises, are decisions and are stored in order.',
  },
  {
    what: 'claims, offers taken back, harness starts, and since when nothing gates a run',
    tables: ['runs'],
    why: 'One statement changes each row from one state of its lease to the next, whatever becomes of the others that it is about. Whoever decides by that state writes the same row.',
  },
  {
    what: 'heartbeats, links, claim states and readiness of devices',
    tables: ['devices'],
    why: 'The device says how it is now. Whoever decides by it decides by what was known at that moment, which the next second may change.',
  },
  {
    what: 'questions to devices, and what tells of a link that ended',
    tables: ['outbox'],
    why: 'Nobody decides by the outbox: it wakes whoever looks at the state itself.',
  },
  {
    what: 'idempotency keys that are claimed and freed',
    tables: ['idempotency'],
    why: 'One row by its key, told apart by the insert. The answer is stored in the transaction of the effect.',
  },
  {
    what: 'deliveries of GitHub that are stored, claimed and finished',
    tables: ['github_deliveries'],
    why: 'One row by its key; the claim is a compare-and-set. What follows from a delivery is repeatable and in order.',
  },
  {
    what: 'events for webhooks that are claimed, deliveries that are claimed and noted, and whether they fail',
    tables: ['webhook_events', 'webhook_deliveries', 'webhooks'],
    why: 'One row by its key; a claim and its note are compare-and-set. Since when a webhook fails is shown, and days are judged by it.',
  },
  {
    what: 'the next mail to a person that is claimed, and mail that nobody took for a day',
    tables: ['mail_settings', 'mails'],
    why: 'One row by its key; the claim is a compare-and-set, and what came of it is noted in order. Mail that goes while it is sent was told all the same.',
  },
  {
    what: 'sign-ins that are begun, attempts that are taken, guesses that are counted, sessions that are ended, last uses of tokens',
    tables: ['device_grants', 'oidc_attempts', 'code_guesses', 'login_tokens', 'dashboard_sessions'],
    why: 'One row by a secret that only its owner knows, or by the person who guesses, in one statement. That a token was used is shown and decides nothing.',
  },
  {
    what: 'rows whose time is over',
    tables: [
      'outbox',
      'device_replies',
      'idempotency',
      'wake_keys',
      'wakes',
      'device_grants',
      'oidc_attempts',
      'sign_in_links',
      'code_guesses',
      'dashboard_sessions',
      'github_deliveries',
      'automation_fires',
      'quota_windows',
      'quota_uses',
      'provider_circuits',
      'webhook_events',
      'webhook_deliveries',
    ],
    why: 'Every reader passes them over by their time already.',
  },
  {
    what: 'rows of what was removed, in all tables that belong to a workspace',
    tables: [],
    why: 'The workspace or conversation was made gone by a transaction in order, and no reader finds its rows any more. A row that somebody adds late keeps the last row from going, by the foreign key, and goes with the next batch.',
  },
  {
    what: 'blobs that are intended, given up, forgotten, and removed',
    tables: ['blobs'],
    why: 'One row by its id, from one state to the next under a condition. A transaction that comes to own the blob writes the same row under the same condition.',
  },
  {
    what: 'chunks of texts that somebody embeds, or tries again later',
    tables: ['search_chunks'],
    why: 'One statement that changes when a chunk is tried next, where nobody else has taken it. Nobody decides by that time what is stored.',
  },
  { what: 'counts of rate limits', tables: ['rate_limits'], why: 'The library counts in one statement.' },
  {
    what: 'keys of the server',
    tables: ['server_keys'],
    why: 'The first insert wins. The one that changes is changed in order.',
  },
  { what: 'the schema', tables: ['schema_migrations'], why: 'Migrations wait for each other by a lock.' },
]
