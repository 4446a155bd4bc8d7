import type { World } from '../../../../shared/lib/world.ts'
import type { Db } from '../../../db/open.ts'
import { recordHold } from '../../tasks/hold-activity.ts'
import type { Actor } from '../../tasks/rules.ts'
import { recordEvent } from '../../webhooks/event-store.ts'
import type { NewQuestion } from '../store.ts'

/** Records for webhooks, and in the history of its task, that a question is asked. `data`: which run asks. */
export async function recordAsked(
  tx: Db,
  { id: subjectId, workspaceId, taskId, prompt }: NewQuestion,
  { actor, data, world }: { actor: Actor; data: Readonly<Record<string, unknown>>; world: World },
): Promise<void> {
  await recordEvent(tx, { type: 'question.asked', workspaceId, subjectId, world })
  await recordHold(tx, {
    taskId,
    kind: 'question.asked',
    actor,
    data: { questionId: subjectId, ...data, prompt },
    world,
  })
}
