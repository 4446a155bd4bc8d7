import type { CommandContext, Flow } from '../context/context.ts'
import type { Client } from '../calls/client.ts'
import { exitStatus } from '../errors/exit-codes.ts'
import { fillPath } from '../http/route-call.ts'
import { untilInterrupted } from '../machine/interrupt.ts'
import { workflowChanges, workflowEnding } from '../output/live-workflow.ts'
import { textAt } from '../replies/fields.ts'

/** It is read again after so long: nothing streams the steps of a workflow. */
const againMs = 1_000

/** `workflow runs watch`: shows a run of a workflow step by step, to its end, which the exit status says, too. */
export const workflowWatch: Flow = async (context) => {
  const id = context.values.params['workflowRunId']!
  return watchWorkflow(context, { client: await context.connect(), id, waitMs: null })
}

/** `waitMs`: the time to watch it for; null: to its end. */
export async function watchWorkflow(
  { out, world }: CommandContext,
  { client, id, waitMs }: { client: Client; id: string; waitMs: number | null },
): Promise<number> {
  const path = fillPath('/api/v1/workflows/runs/{id}', { id })
  const until = waitMs === null ? Number.POSITIVE_INFINITY : world.monotonic() + waitMs
  const isShown = out.format !== 'json'
  const comeBack = `svc: ${id} goes on. Come back with \`svc workflow runs watch ${id}\`, stop it with \`svc workflow runs cancel ${id}\`.`
  return untilInterrupted(
    () => out.message(comeBack),
    async () => {
      let before: unknown = null
      for (;;) {
        const { body: run } = await client.call({ method: 'GET', path })
        if (isShown) {
          if (before === null) out.text(out.paint(`${id} · ${textAt(run, 'workflow') ?? ''}`, 'bold'))
          for (const [text, tone] of workflowChanges(before, run)) out.text(out.paint(text, tone))
        }
        before = run
        const isOver = textAt(run, 'completedAt') !== null
        if (isOver || world.monotonic() >= until) {
          if (!isShown) await out.result(run)
          else if (isOver) out.text(out.paint(...workflowEnding(run)))
          if (isOver) return exitStatus(textAt(run, 'status') === 'completed' ? 'ok' : 'run_failed')
          out.message(comeBack)
          return exitStatus('wait_timed_out')
        }
        await world.sleep(Math.min(againMs, Math.max(1, until - world.monotonic())))
      }
    },
  )
}
