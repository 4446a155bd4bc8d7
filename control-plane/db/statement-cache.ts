import type BetterSqlite3 from 'better-sqlite3'

/** A statement is there once for each number of rows that it was asked for. */
const kept = 2_000

/**
 * Keeps prepared statements by their text: knex prepares anew for each query, which costs more than most of our queries
 * do. A statement that is being iterated is not given out twice, and a change of the schema empties the cache.
 */
export function cacheStatements(raw: BetterSqlite3.Database): void {
  const prepare = raw.prepare.bind(raw)
  const cache = new Map<string, BetterSqlite3.Statement>()
  const cached = (source: string): BetterSqlite3.Statement => {
    const known = cache.get(source)
    if (known && !known.busy) return known
    const statement = prepare(plannedOnce(source))
    if (/^\s*(?:create|alter|drop|vacuum|pragma)\b/i.test(source)) {
      cache.clear()
      return statement
    }
    if (cache.size >= kept) cache.delete(cache.keys().next().value ?? '')
    cache.set(source, statement)
    return statement
  }
  raw.prepare = cached as typeof raw.prepare
}

/**
 * Writes `+?` for `?`. A bare one may decide how SQLite plans, so it compiles a statement that joins tables anew each time
 * values are bound, which costs twenty times what reading a row does; `+?` is the same value, of which the plan knows
 * nothing. Where the plan gains by it, with `like` and `limit`, it stays.
 */
export function plannedOnce(source: string): string {
  return source.replaceAll(valueOrQuoted, (found, _quoted, at: number) =>
    found === '?' && !/\b(?:like|limit|offset) $/i.test(source.slice(Math.max(0, at - 8), at)) ? '+?' : found,
  )
}

const valueOrQuoted = /('[^']*'|"[^"]*"|`[^`]*`)|\?/g
