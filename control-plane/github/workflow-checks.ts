import type { Knex } from 'knex'
import type { World } from '../../shared/lib/world.ts'
import { inTransaction } from '../db/transaction.ts'
import type { Lines } from '../process/lines.ts'
import type { Log } from '../process/log.ts'
import { listOpenChecks, type OpenChecks } from '../resources/workflows/checks-store.ts'
import { noteChecks } from '../resources/workflows/steps/checks-noted.ts'
import type { Sweep } from '../sweeps/sweeper.ts'
import type { GithubClient } from './client.ts'
import { findPullOfBranch, listChecks, readPull } from './reads.ts'

/**
 * Reads what workflows wait for at GitHub: the checks of the pull request of a branch. They are read once a minute, and at once
 * when GitHub says that something passed. What is read is noted in a transaction; the first reading that is done ends the wait. All
 * waits of a workspace on one branch have one reading, so that a program with a thousand of them uses up nobody's requests.
 */
export interface CheckReading {
  root: Knex
  world: World
  log: Log
  client: GithubClient
}

const perPage = 1_000
/**
 * Branches that are read for one message of GitHub: the messages after it wait meanwhile. The others are read within a minute.
 */
const branchesAtOnce = 20
const minute = 60_000

export function workflowChecksSweep(options: Omit<CheckReading, 'client'> & { client: GithubClient | null }): Sweep {
  const { client } = options
  return {
    name: 'workflow_checks',
    everyMs: minute,
    async run({ root, lines }) {
      if (client !== null) lookAtAll({ ...options, client }, { waits: await listAllOpen(root), lines })
    },
  }
}

/** All of them: whoever has many waits with near deadlines keeps no other from being read. */
async function listAllOpen(root: Knex): Promise<OpenChecks[]> {
  const all: OpenChecks[] = []
  let page: OpenChecks[] = []
  do {
    const after = page.at(-1)
    page = await listOpenChecks(root, { ...(after && { after }), limit: perPage })
    all.push(...page)
  } while (page.length === perPage)
  return all
}

function lookAtAll(reading: CheckReading, { waits, lines }: { waits: readonly OpenChecks[]; lines: Lines }): void {
  for (const [branch, ofBranch] of byBranch(waits))
    // In lines of their own: a slow GitHub holds up no write of a workspace.
    lines.add(`checks:${ofBranch[0]!.workspaceId}`, () => look(reading, ofBranch), branch)
}

const byBranch = (waits: readonly OpenChecks[]): Map<string, OpenChecks[]> =>
  Map.groupBy(waits, ({ workspaceId, repo, branch }) => `${workspaceId} ${repo} ${branch}`)

/** The same at once for the waits on one repository. */
export async function lookAtChecksOf(reading: CheckReading, repo: string): Promise<void> {
  const branches = byBranch(await listOpenChecks(reading.root, { repo, limit: perPage }))
  for (const waits of [...branches.values()].slice(0, branchesAtOnce)) await look(reading, waits)
}

/** `waits`: all on one branch. */
async function look({ root, world, log, client }: CheckReading, waits: readonly OpenChecks[]): Promise<void> {
  const { repo, branch, workspaceId, workflowRunId } = waits[0]!
  try {
    const number = await findPullOfBranch(client, repo, branch)
    const pull = number === null ? null : await readPull(client, repo, number)
    const checks = pull === null ? [] : await listChecks(client, repo, pull.headSha)
    for (const wait of waits)
      await inTransaction(root, (tx) => noteChecks(tx, wait, { checks, at: world.now() }), { turns: [workspaceId] })
  } catch (error) {
    // Read again in a minute, until the deadline.
    log.warn({ err: error, workflowRun: workflowRunId, repo }, 'the checks of a workflow could not be read')
  }
}
