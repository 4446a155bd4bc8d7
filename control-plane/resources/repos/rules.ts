// A repository, read from the address of its git remote.

export interface Remote {
  /** `host/owner/name`, lower-case. */
  gitRemote: string
  /** `owner/name`, lower-case. */
  name: string
  host: string
  provider: 'github' | 'gitlab' | 'bitbucket' | 'other'
}

/**
 * Reads `https://host/owner/name.git`, `ssh://git@host:22/owner/name`, `git@host:owner/name.git`, `git://...` and the
 * bare `host/owner/name`. Ignores user, password, port and `.git`. Returns null when the address names no repository on
 * a host.
 */
export function readRemote(url: string): Remote | null {
  const parts = urlForm(url.trim()) ?? scpForm(url.trim())
  if (parts === null) return null
  const host = parts.host.toLowerCase().replace(/\.$/, '')
  const path = parts.path
    .toLowerCase()
    .replaceAll(/\/{2,}/g, '/')
    .replace(/^\/+|\/+$/g, '')
    .replace(/\.git$/, '')
  if (!isHost(host) || !isPath(path)) return null
  return { gitRemote: `${host}/${path}`, name: path, host, provider: providerOf(host) }
}

/**
 * The address at which git is asked for what `url` names, with its case and its port; null: `url` names no repository. Other ways than
 * http are asked by https at the usual port.
 */
export function cloneUrlOf(url: string): string | null {
  const text = url.trim()
  const parts = urlForm(text) ?? scpForm(text)
  if (parts === null || readRemote(text) === null) return null
  const path = parts.path.replaceAll(/\/{2,}/g, '/').replace(/^\/+|\/+$/g, '')
  const host = parts.host.toLowerCase().replace(/\.$/, '')
  const given = /^https?:/i.test(text) ? URL.parse(text) : null
  // An address that others would read in another way (`https://a\\@b/...`) is none to go to.
  if (given !== null && given.hostname !== host) return null
  return given === null ? `https://${host}/${path}` : `${given.protocol}//${given.host}/${path}`
}

/** Returns the address at which git is asked for a repository. Some hosts send elsewhere where the end is missing, and nobody follows. */
export function addressOfRepo({
  cloneUrl,
  gitRemote,
  provider,
}: Pick<Remote, 'gitRemote' | 'provider'> & { cloneUrl: string | null }): string {
  const url = cloneUrl ?? `https://${gitRemote}`
  return provider === 'other' || url.endsWith('.git') ? url : `${url}.git`
}

function urlForm(url: string): { host: string; path: string } | null {
  const match =
    /^(?:(?:https?|ssh|git|git\+ssh|ssh\+git):\/\/)(?:[^/@\s]*@)?(\[[^\]]*\]|[^/:@\s]+)(?::\d{1,5})?\/(\S+)$/i.exec(url)
  return match ? { host: match[1]!, path: match[2]!.replace(/[?#].*$/, '') } : null
}

/** `git@host:owner/name`, or `host/owner/name`. */
function scpForm(url: string): { host: string; path: string } | null {
  const scp = /^(?:[^/@:\s]+@)?([^/@:\s]+):(?!\/\/)(\S+)$/.exec(url)
  if (scp) return { host: scp[1]!, path: scp[2]! }
  const bare = /^([^/@:\s]+\.[^/@:\s]+)\/(\S+)$/.exec(url)
  return bare ? { host: bare[1]!, path: bare[2]! } : null
}

const isHost = (host: string) => /^(\[[0-9a-f:.]+\]|[a-z0-9]([a-z0-9.-]*[a-z0-9])?)$/.test(host)

/** Two parts or more (groups within groups), none of which is a step to elsewhere. */
function isPath(path: string): boolean {
  const parts = path.split('/')
  return parts.length >= 2 && parts.every((part) => /^[\w.~+-]+$/.test(part) && part !== '.' && part !== '..')
}

function providerOf(host: string): Remote['provider'] {
  for (const provider of ['github', 'gitlab', 'bitbucket'] as const)
    if (host.split('.').some((label) => label === provider)) return provider
  return 'other'
}
