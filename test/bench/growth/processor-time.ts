import { readdirSync, readFileSync } from 'node:fs'

/** Milliseconds of processor time that this thread has had, in which a server of this process and its SQLite work. */
export function ownMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

/** Milliseconds of processor time of all processes of PostgreSQL on this machine; where there is no `/proc` 0. */
export function postgresMs(): number {
  let ns = 0
  for (const pid of pids()) {
    if (read(`/proc/${pid}/comm`)?.trim() !== 'postgres') continue
    ns += Number(read(`/proc/${pid}/schedstat`)?.split(' ')[0] ?? 0)
  }
  return ns / 1e6
}

const pids = (): string[] =>
  process.platform === 'linux' ? readdirSync('/proc').filter((name) => /^\d+$/.test(name)) : []

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}
