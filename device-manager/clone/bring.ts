import { rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { type cloneStart, type Bring } from './job.ts'
import type { z } from 'zod'
import { gitIn, makeOwnFolder, startFile } from './own-git.ts'
import { hasBranches, remoteRefs } from './remote-refs.ts'
import { patiently } from './patience.ts'
import { CloneError, saidBy } from './trouble.ts'

/**
 * Clones the repository of a run and goes to its branch: where that is, if the git host has it, else at the base branch. Throws CloneError
 * with a sentence for people. Done again, it begins anew.
 */
export async function bring(job: Bring): Promise<void> {
  const { url, folder, branch, baseBranch } = job
  rmSync(folder, { recursive: true, force: true })
  const own = makeOwnFolder(folder)
  const outside = gitIn(own, folder)
  const wanted = [branch, ...(baseBranch === null ? [] : [baseBranch])]
  const { branches, head } = await patiently(() => remoteRefs(outside, url, wanted)).catch(
    saidBy('The repository cannot be cloned'),
  )
  const base = baseBranch ?? head
  const result = branches.get(branch) ?? null
  if (base !== null && result === null && !branches.has(base) && (await hasAny()))
    throw new CloneError(`The repository has no branch ${base}.`)
  if (base === null && result === null && (await hasAny()))
    throw new CloneError('The repository names no branch as its own. Name a base branch.')
  const first = base !== null && branches.has(base) ? base : result === null ? null : branch
  if (first === null) await beginEmpty(job)
  else await cloneAt(job, { first, result })
  await configure(job)
  const start = first === null ? null : await gitIn(folder, folder).revparse(['--verify', 'HEAD^{commit}'])
  const known = [...new Set(branches.values())]
  const note: z.infer<typeof cloneStart> = { start, known }
  // Last: with it the clone is whole.
  writeFileSync(startFile(folder), JSON.stringify(note), { mode: 0o600 })

  function hasAny(): Promise<boolean> {
    return patiently(() => hasBranches(outside, url)).catch(saidBy('The repository cannot be cloned'))
  }
}

async function beginEmpty({ folder, branch }: Bring): Promise<void> {
  await gitIn(dirname(folder), folder).init(['--quiet', `--initial-branch=${branch}`, folder])
  await gitIn(folder, folder).addRemote('origin', 'http://127.0.0.1/')
}

async function cloneAt(
  { url, folder, branch }: Bring,
  { first, result }: { first: string; result: string | null },
): Promise<void> {
  const options = ['--quiet', '--no-checkout', '--single-branch', `--branch=${first}`, '--origin=origin']
  const above = gitIn(dirname(folder), folder)
  await patiently(() => {
    rmSync(folder, { recursive: true, force: true })
    return above.clone(url, folder, [...options, '--no-recurse-submodules'])
  }).catch(saidBy('The repository cannot be cloned'))
  const git = gitIn(folder, folder)
  if (first === branch) return void (await git.checkout(branch).catch(saidBy(`${branch} cannot be checked out`)))
  const from = `refs/remotes/origin/${result === null ? first : branch}`
  if (result !== null)
    await patiently(() =>
      git.fetch(url, `+refs/heads/${branch}:${from}`, ['--quiet', '--no-recurse-submodules']),
    ).catch(saidBy('The repository cannot be cloned'))
  await git.checkout(['--quiet', '--no-track', '-b', branch, from]).catch(saidBy(`${branch} cannot be checked out`))
}

/** What is asked of the origin goes to the broker; the harness sees the address that people know. */
async function configure({ url, folder, address, committer }: Bring): Promise<void> {
  const git = gitIn(folder, folder)
  for (const [name, value] of [
    ['remote.origin.url', address],
    ['remote.origin.fetch', '+refs/heads/*:refs/remotes/origin/*'],
    [`url.${url}.insteadOf`, address],
    // To the branch of the same name, which the broker knows.
    ['push.default', 'current'],
    ['user.name', committer.name],
    ['user.email', committer.email],
  ] as const)
    await git.addConfig(name, value)
}
