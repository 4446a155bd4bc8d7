import type { SimpleGit } from 'simple-git'

/** What a git host has: ids of commits by the names of branches. */
export interface RemoteRefs {
  branches: ReadonlyMap<string, string>
  /** The branch that the host calls the repository's own; null: it has none, or does not say. */
  head: string | null
}

/** Asks for these branches, and for the host's own. */
export async function remoteRefs(git: SimpleGit, url: string, names: readonly string[]): Promise<RemoteRefs> {
  const refs = names.map((name) => `refs/heads/${name}`)
  return readRefs(await git.listRemote(['--symref', url, 'HEAD', ...refs]))
}

/** Whether the host has any branch. */
export async function hasBranches(git: SimpleGit, url: string): Promise<boolean> {
  return readRefs(await git.listRemote(['--heads', url])).branches.size > 0
}

export function readRefs(text: string): RemoteRefs {
  const branches = new Map<string, string>()
  let head: string | null = null
  for (const line of text.split('\n')) {
    const [, own] = /^ref: refs\/heads\/(.+)\tHEAD$/.exec(line) ?? []
    if (own !== undefined) head = own
    const [, id, name] = /^([0-9a-f]{40,64})\t(?:refs\/heads\/(.+)|HEAD)$/.exec(line) ?? []
    const branch = name ?? head
    if (id !== undefined && branch !== null) branches.set(branch, id)
  }
  return { branches, head }
}
