import type { Tx } from '../db/open.ts'
import { inTransaction } from '../db/transaction.ts'
import { closeBySystem } from '../resources/questions/steps/answer.ts'
import { listOverdueQuestions } from '../resources/questions/store.ts'
import type { Sweep } from './sweeper.ts'

/** The number of questions that one round handles, the longest overdue first. */
const perRound = 1_000

/** Closes questions whose runs have waited for an answer as long as they said. Each closing is a compare-and-set. */
export const overdueQuestionsSweep = ({ everyMs }: { everyMs: number }): Sweep => ({
  name: 'overdue_questions',
  everyMs,
  async run({ root, now, world, lines }) {
    for (const question of await listOverdueQuestions(root, { now, limit: perRound })) {
      const { id, workspaceId } = question
      const close = (tx: Tx) => closeBySystem(tx, question, { reason: 'wait_timeout', world })
      lines.add(workspaceId, () => inTransaction(root, close, { turns: [workspaceId] }), id)
    }
  },
})
