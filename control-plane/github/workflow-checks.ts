import type { Knex } from 'knex'
import type { World } from '../../shared/lib/world.ts'
import { inPages } from '../db/table.ts'
import type { Tx } from '../db/open.ts'
import { inTransaction } from '../db/transaction.ts'
import type { Log } from '../process/log.ts'
import {
  listNearestBranches,
  listOpenChecks,
  listWaitedBranches,
  type OpenChecks,
  type WaitedBranch,
} from '../resources/workflows/checks-store.ts'
import { noteChecks } from '../resources/workflows/steps/checks-noted.ts'
import type { Sweep } from '../sweeps/sweeper.ts'
import type { GithubClient } from './client.ts'
import { findPullOfBranch, listChecks, readPull } from './reads.ts'

/**
 * Reads what workflows wait for at GitHub: the checks of the pull request of a branch. They are read once a minute, and at once
 * when GitHub says that one passed or failed. What is read is noted in a transaction; the first reading that is done ends the wait. All
 * waits of a workspace on one branch have one reading, so that a program with a thousand of them uses up nobody's requests.
 */
export interface CheckReading {
  root: Knex
  world: World
  log: Log
  client: GithubClient
}

const perPage = 1_000
/** The most that one transaction notes: so many waits, and fewer where the checks of the branch are long, as each wait keeps them. */
const perTransaction = { waits: 200, chars: 1_000_000 }
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
    async run({ root, queue }) {
      if (client === null) return
      for await (const page of inPages<WaitedBranch>(perPage, (next) => listWaitedBranches(root, next)))
        for (const branch of page) {
          const { workspaceId, repo, branch: name } = branch
          // Reads stand in queues of their own: a slow GitHub holds up no write of a workspace.
          queue.add(`checks:${workspaceId}`, () => readChecks({ ...options, client }, branch), `${repo} ${name}`)
        }
    },
  }
}

/** Reads the checks at once for the waits on one repository. */
export async function readChecksOf(reading: CheckReading, repo: string): Promise<void> {
  for (const branch of await listNearestBranches(reading.root, repo, branchesAtOnce)) await readChecks(reading, branch)
}

async function readChecks({ root, world, log, client }: CheckReading, on: WaitedBranch): Promise<void> {
  const { workspaceId, repo, branch } = on
  try {
    const number = await findPullOfBranch(client, repo, branch)
    const pull = number === null ? null : await readPull(client, repo, number)
    const checks = pull === null ? [] : await listChecks(client, repo, pull.headSha)
    const fitting = Math.floor(perTransaction.chars / JSON.stringify(checks).length)
    const limit = Math.max(1, Math.min(perTransaction.waits, fitting))
    for await (const waits of inPages<OpenChecks>(limit, (next) => listOpenChecks(root, { on, ...next }))) {
      const note = (tx: Tx) => noteChecks(tx, waits, { checks, at: world.now() })
      if (waits.length > 0) await inTransaction(root, note, { locks: [workspaceId] })
    }
  } catch (error) {
    // The checks are read again in a minute, until the deadline.
    log.warn({ err: error, workspaceId, repo, branch }, 'the checks that workflows wait for could not be read')
  }
}
