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
 * when GitHub says that something passed. What is read is noted in a transaction; the first reading that is done ends the wait.
 */
export interface CheckReading {
  root: Knex
  world: World
  log: Log
  client: GithubClient
}

const perRound = 1_000
const minute = 60_000

export function workflowChecksSweep(options: Omit<CheckReading, 'client'> & { client: GithubClient | null }): Sweep {
  const { client } = options
  return {
    name: 'workflow_checks',
    everyMs: minute,
    async run({ root, lines }) {
      if (client !== null)
        await lookAtAll({ ...options, client }, { waits: await listOpenChecks(root, { limit: perRound }), lines })
    },
  }
}

async function lookAtAll(
  reading: CheckReading,
  { waits, lines }: { waits: readonly OpenChecks[]; lines: Lines },
): Promise<void> {
  for (const wait of waits)
    // In lines of their own: a slow GitHub holds up no write of a workspace.
    lines.add(`checks:${wait.workspaceId}`, () => look(reading, wait), `${wait.workflowRunId}:${wait.seq}`)
  return Promise.resolve()
}

/** The same at once for the waits on one repository. */
export async function lookAtChecksOf(reading: CheckReading, repo: string): Promise<void> {
  for (const wait of await listOpenChecks(reading.root, { repo, limit: perRound })) await look(reading, wait)
}

async function look({ root, world, log, client }: CheckReading, wait: OpenChecks): Promise<void> {
  const { repo, branch, workspaceId } = wait
  try {
    const number = await findPullOfBranch(client, repo, branch)
    const pull = number === null ? null : await readPull(client, repo, number)
    const checks = pull === null ? [] : await listChecks(client, repo, pull.headSha)
    await inTransaction(root, (tx) => noteChecks(tx, wait, { checks, at: world.now() }), { turns: [workspaceId] })
  } catch (error) {
    // Read again in a minute, until the deadline.
    log.warn({ err: error, workflowRun: wait.workflowRunId, repo }, 'the checks of a workflow could not be read')
  }
}
