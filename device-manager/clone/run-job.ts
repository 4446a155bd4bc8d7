import { brokerPort } from '../../shared/device/sandbox.ts'
import { programUrl } from '../../shared/lib/program-file.ts'
import { isBranchName, repoPath, type RunRepo } from '../../shared/runs/repo.ts'
import type { RunSpec } from '../../shared/runs/spec.ts'
import { fileURLToPath } from 'node:url'
import { spawnPiped } from '../process/program.ts'
import { systemPath } from '../wall/namespaces.ts'
import { cloneAnswer, type CloneAnswer, type CloneJob, type Delivered } from './job.ts'

// Has git work for a run in a sandbox, in a process of its own (main.ts) that this one bounds: it ends by SIGKILL with all that it started
// when its time is over, its output and its memory have a limit, and one that cannot be started is an answer like others.

export interface JobLimits {
  timeMs: number
  outputBytes: number
  /** Ends it. */
  signal?: AbortSignal
}

/** A repository of 1 GB comes through the broker of a busy server within this time. */
export const bringMs = 30 * 60_000
export const deliverMs = 10 * 60_000
/** Of a sandbox that was lost, which has less time. */
export const rescueMs = 150_000
const outputBytes = 64 * 1024
const heapMb = 256

export function runJob(job: CloneJob, { signal, ...limits }: JobLimits): Promise<CloneAnswer> {
  const args = [
    `--max-old-space-size=${heapMb}`,
    '--disable-warning=ExperimentalWarning',
    fileURLToPath(programUrl('device-manager/clone')),
  ]
  const env = { PATH: systemPath, LC_ALL: 'C' }
  const piped = spawnPiped(process.execPath, args, { cwd: '/', env, detached: true })
  if ('failed' in piped) return piped.failed.then((error) => notDone(`git could not be started: ${error.message}`))
  const { child, pid } = piped
  const { promise, resolve } = Promise.withResolvers<CloneAnswer>()
  let said = ''
  let why: string | null = null
  const kill = () => {
    try {
      process.kill(-pid, 'SIGKILL')
    } catch {
      // It has ended.
    }
  }
  const stop = (reason: string) => {
    why ??= reason
    kill()
  }
  const timer = setTimeout(() => stop(`It took longer than ${Math.ceil(limits.timeMs / 60_000)} min.`), limits.timeMs)
  process.once('exit', kill)
  const leave = () => stop('It was told to stop.')
  if (signal?.aborted === true) leave()
  signal?.addEventListener('abort', leave, { once: true })
  child.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString('utf8')
    if (said.length > limits.outputBytes) stop('git said too much.')
  })
  child.stderr.resume()
  child.stdin.end(JSON.stringify(job))
  child.on('close', (code, killedBy) => {
    clearTimeout(timer)
    process.off('exit', kill)
    // What it left behind would go on.
    kill()
    signal?.removeEventListener('abort', leave)
    resolve(why === null ? answerIn(said, `git ended with ${killedBy ?? `status ${code}`}.`) : notDone(why))
  })
  return promise
}

const notDone = (message: string): CloneAnswer => ({ ok: false, message })

function answerIn(said: string, otherwise: string): CloneAnswer {
  try {
    return cloneAnswer.parse(JSON.parse(said.split('\n')[0] ?? ''))
  } catch {
    return notDone(otherwise)
  }
}

/** Of the repository at the broker of this sandbox. */
const urlOf = ({ id }: RunRepo): string => `http://127.0.0.1:${brokerPort}${repoPath(id)}`

/** Has the clone be there before the run starts. Resolves with why it is not, for people; null: it is. */
export async function bringRepo({ repo, folder, agent }: RunSpec, signal: AbortSignal): Promise<string | null> {
  if (repo == null || folder === null) return null
  const { address, branch, baseBranch } = repo
  if (address === null) return 'The repository of this run is not in its workspace any more.'
  for (const name of [branch, ...(baseBranch === null ? [] : [baseBranch])])
    if (!isBranchName(name)) return `${JSON.stringify(name)} is no name that git takes for a branch.`
  const committer = { name: agent.name, email: `${agent.id}@agents.svc.invalid` }
  const place = { url: urlOf(repo), folder: folder.rootPath, branch }
  const job = { do: 'bring', ...place, address, baseBranch, committer } as const
  const answer = await runJob(job, { timeMs: bringMs, outputBytes, signal })
  return answer.ok ? null : `${answer.message} (${address})`
}

/** Pushes what the run did. null: it has no clone. */
export async function deliverWork(
  { repo, folder, runId }: Pick<RunSpec, 'repo' | 'folder' | 'runId'>,
  timeMs: number,
): Promise<Delivered | null> {
  if (repo?.address == null || folder === null || !isBranchName(repo.branch)) return null
  const { branch, rescueBranch } = repo
  const job = { do: 'deliver', url: urlOf(repo), folder: folder.rootPath, branch, rescueBranch, runId } as const
  const answer = await runJob(job, { timeMs, outputBytes })
  if (answer.ok) return answer.delivered ?? null
  return { pushed: null, rescued: null, lost: `What the run did could not be pushed: ${answer.message}` }
}
