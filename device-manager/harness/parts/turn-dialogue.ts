import type { DialogueOptions, HarnessDialogue } from '../adapter.ts'
import { lineFrame, type LineRun } from './line-frame.ts'

/** A run of an agent program that is spoken with in lines of JSON. */
export type TurnRun = LineRun & Pick<HarnessDialogue, 'open' | 'answer' | 'input'>

/** Returns the dialogue of a run. `maxLineBytes`: of a line that is read as a whole. */
export function turnDialogue(
  run: TurnRun,
  options: DialogueOptions,
  { outcome, maxLineBytes }: Pick<HarnessDialogue, 'outcome'> & { maxLineBytes?: number },
): HarnessDialogue {
  return {
    open: () => run.open(),
    ...lineFrame(run, options, maxLineBytes),
    answer: (askId, decision) => run.answer(askId, decision),
    input: (text) => run.input(text),
    outcome,
  }
}
