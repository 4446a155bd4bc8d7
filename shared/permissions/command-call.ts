import type { StepCommand } from '../runs/spec.ts'
import type { ToolCall } from './call-inputs.ts'

/**
 * The call as which the command of a workflow step is judged and shown: that of a shell which starts this program with these arguments. Its
 * folder, which lies in that of the run, is shown only, as that of an agent which went there before.
 */
export function commandCall({
  argv,
  cwd,
}: Pick<StepCommand, 'argv' | 'cwd'>): ToolCall & { input: { command: string; description: string } } {
  const command = argv.map((word, at) => shellWord(word, at === 0)).join(' ')
  const description = `A gate of a workflow${cwd === null ? '' : `, in the folder ${cwd}`}.`
  return { name: 'Bash', input: { command, description } }
}

/** Writes the word so that a shell reads it, and nothing else. The first one would be no program with `=` in it. */
function shellWord(word: string, isFirst: boolean): string {
  const plain = isFirst ? /^[\w%+:,./@-]+$/ : /^[\w%+:,./@=-]+$/
  return plain.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`
}
