import Client from 'knex/lib/dialects/postgres/index.js'
import { copyRows, type CopiedInto, type CopiedRow } from './copy.ts'
import type { StatementClient, StatementText, Value } from './statement.ts'

/** knex's client; statements are prepared once for each connection. */
export class PostgresClient extends Client implements StatementClient {
  async readRows(text: StatementText, values: readonly Value[]): Promise<unknown[]> {
    return (await this.ask(text, values)).rows
  }

  async change(text: StatementText, values: readonly Value[]): Promise<number> {
    return (await this.ask(text, values)).rowCount ?? 0
  }

  async changeRows(text: StatementText, values: readonly Value[]): Promise<unknown[]> {
    return (await this.ask(text, values)).rows
  }

  async insertRows(into: CopiedInto, rows: readonly CopiedRow[]): Promise<void> {
    const connection = await this.acquireConnection()
    try {
      await copyRows(connection, into, rows)
    } finally {
      void this.releaseConnection(connection)
    }
  }

  private async ask({ postgres, name }: StatementText, bindings: readonly Value[]) {
    const connection = await this.acquireConnection()
    try {
      const { response } = await this.query(connection, { sql: postgres, bindings, options: { name } })
      // As knex tells of its own queries.
      this.emit('query-response', response, { sql: postgres })
      return response
    } finally {
      void this.releaseConnection(connection)
    }
  }
}
