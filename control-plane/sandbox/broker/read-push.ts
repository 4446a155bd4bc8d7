import type { IncomingMessage } from 'node:http'
import { PackCommits, packLimits } from './pack-commits.ts'
import { judgePush, namesBranch, PushRefused, readPushHead } from './push-commands.ts'
import type { RepoPermit } from './repo-access.ts'

/** Resolves with the branch that the git host calls the repository's own; null: it says none. */
export type FindOwnBranch = () => Promise<string | null>

/** Reads as much of a push as it takes to judge it, which is returned. Throws PushRefused, and what `findOwn` throws. */
export async function readPush(request: IncomingMessage, repo: RepoPermit, findOwn: FindOwnBranch): Promise<Buffer> {
  const chunks = request.iterator({ destroyOnReturn: false }) as AsyncIterableIterator<Buffer>
  try {
    return await readFrom(chunks, repo, findOwn)
  } finally {
    await chunks.return?.()
  }
}

async function readFrom(
  chunks: AsyncIterator<Buffer>,
  { branch, rescueBranch }: RepoPermit,
  findOwn: FindOwnBranch,
): Promise<Buffer> {
  let read: Buffer = Buffer.alloc(0)
  let isWhole = false
  /** Reads until there is so much; false at the end. */
  const readTo = async (least: number): Promise<boolean> => {
    const parts: Buffer[] = [read]
    for (let length = read.length; length < least && !isWhole;) {
      const next = await chunks.next()
      isWhole = next.done === true
      if (next.done === true) break
      parts.push(next.value)
      length += next.value.length
    }
    read = Buffer.concat(parts)
    return !isWhole
  }
  let head = readPushHead(read)
  while (head === null && (await readTo(read.length + 1))) head = readPushHead(read)
  const nothing = { commands: [], abilities: new Set<string>() }
  if (head === null) throw new PushRefused('The push ends too early.', nothing)
  // A client finds out by a push without commands whether it is let in.
  if (head.commands.length === 0) {
    await readTo(head.length + 1)
    if (read.length > head.length) throw new PushRefused('The push is not of a form that git sends.', nothing)
    return read
  }
  for (const { oldId, newId, ref } of judgePush(head, { result: branch, rescue: rescueBranch })) {
    const commits = new PackCommits(newId.length)
    for (;;) {
      const found = await commits.leads(read.subarray(head.length), { from: newId, to: oldId, isWhole })
      if (found === 'yes') break
      if (found === 'no')
        throw new PushRefused(
          `${ref.slice('refs/heads/'.length)} only moves forward: nothing in the push leads from what is there to the new commit.`,
          head,
        )
      // The reader asks for at least twice as much as before, so that no byte is looked at too often.
      await readTo(Math.min(Math.max(64 * 1024, read.length * 2), packLimits.bytes + head.length))
    }
  }
  // The own branch is looked at last, since the git host is asked for it.
  if (branch !== null && namesBranch(head, branch) && (await findOwn()) === branch)
    throw new PushRefused(
      `${branch} is what the git host calls the branch of the repository itself: no run pushes to it.`,
      head,
    )
  return read
}
