import Client from 'knex/lib/dialects/better-sqlite3/index.js'

/**
 * Writes the number of a `limit ?` into the statement. SQLite plans by the number and so compiles a statement anew each
 * time it is bound, which costs several times what reading a row does; the text with the number is prepared once.
 */
export class SqliteClient extends Client {
  protected override _query(...[connection, query]: Parameters<Client['_query']>): Promise<unknown> {
    const limit = query.bindings?.at(-1)
    if (query.sql.endsWith(' limit ?') && Number.isSafeInteger(limit)) {
      query.sql = query.sql.slice(0, -1) + String(limit)
      query.bindings = query.bindings?.slice(0, -1) ?? []
    }
    // The name is knex's.
    // oxlint-disable-next-line no-underscore-dangle
    return super._query(connection, query)
  }
}
