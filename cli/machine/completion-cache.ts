import { join } from 'node:path'

/** What a completion of the same reference found a moment ago, in a folder that only this user may use. */
export interface CompletionCache {
  /** The rows and their age in milliseconds, or null. */
  find(): { value: unknown; ageMs: number } | null
  keep(value: unknown): void
}

/** The oldest that is still of use where no answer comes. */
const oldestMs = 10 * 60_000
const maxBytes = 256 * 1024
/** The time of a file is finer than that of the clock, and so may be a little later. */
const clockMs = 1_000

/**
 * `key` names the server, the token and the workspace, so that nothing is shown to another caller. Whatever is wrong with the folder, a
 * completion goes on without it.
 */
export function completionCache(env: NodeJS.ProcessEnv, key: readonly string[], now: number): CompletionCache {
  const fs = process.getBuiltinModule('node:fs')
  const home = env['HOME'] ?? env['USERPROFILE'] ?? ''
  const usual = process.platform === 'darwin' ? `${home}/Library/Caches` : `${home}/.cache`
  const folder = join(env['XDG_CACHE_HOME'] ?? usual, 'svc', 'completion')
  const name = process.getBuiltinModule('node:crypto').createHash('sha256').update(JSON.stringify(key)).digest('hex')
  const path = join(folder, name)
  const isOurs = () => {
    if (home === '' && env['XDG_CACHE_HOME'] === undefined) return false
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
    // Through a link, or in a folder of others, somebody else could place words for this shell.
    const facts = fs.lstatSync(folder)
    return facts.isDirectory() && facts.uid === process.getuid?.() && (facts.mode & 0o077) === 0
  }
  return {
    find: () =>
      quietly(() => {
        if (!isOurs()) return null
        const facts = fs.lstatSync(path)
        const ageMs = now - facts.mtimeMs
        if (!facts.isFile() || facts.size > maxBytes || ageMs < -clockMs || ageMs > oldestMs) return null
        return { value: JSON.parse(fs.readFileSync(path, 'utf8')) as unknown, ageMs }
      }),
    keep: (value) =>
      void quietly(() => {
        const text = JSON.stringify(value)
        if (text.length > maxBytes || !isOurs()) return null
        for (const other of fs.readdirSync(folder)) {
          const file = join(folder, other)
          if (now - fs.lstatSync(file).mtimeMs > oldestMs) fs.rmSync(file, { force: true })
        }
        // Of two at once each has a draft of its own, and the last one counts.
        const draft = `${path}.${process.pid}`
        fs.writeFileSync(draft, text, { mode: 0o600, flag: 'wx' })
        fs.renameSync(draft, path)
        return null
      }),
  }
}

function quietly<T>(work: () => T | null): T | null {
  try {
    return work()
  } catch {
    return null
  }
}
