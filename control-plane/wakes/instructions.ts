import type { AgentRow } from '../resources/agents/store.ts'
import type { WorkspaceRow } from '../resources/workspaces/store.ts'

/** A text that a run's harness is given beside its prompt, as the run's manifest lists it. */
export interface Instructions {
  name: 'svc' | 'workspace context' | 'AGENT.md'
  text: string
}

/** The instructions of a run in the order in which its harness reads them. Empty ones are left out. */
export function instructionsFor(
  agent: Pick<AgentRow, 'agentMd'>,
  workspace: Pick<WorkspaceRow, 'contextMd'>,
): Instructions[] {
  const texts = [
    ['svc', aboutSvc],
    ['workspace context', workspace.contextMd ?? ''],
    ['AGENT.md', agent.agentMd],
  ] as const
  return texts.filter(([, text]) => text.trim() !== '').map(([name, text]) => ({ name, text }))
}

/** One text for the harness. */
export const joinedInstructions = (instructions: readonly Instructions[]): string =>
  instructions.map(({ text }) => text).join('\n\n')

/** Tells every agent, whatever its harness, how it reaches people and other agents. */
export const aboutSvc = `You run unattended, as an agent of svc. Nobody sits at your terminal; what you say and do is kept for people to read later. The command \`svc\` on your PATH acts as you:

- \`svc task get current --include comments\` reads the task you work on, if there is one. The start of this run has moved it to in_progress.
- \`svc comment add current "..."\` tells people what you found or did.
- \`svc question ask "..."\` asks a person. Your run ends then, and you are woken with the answer.
- \`svc learning add --topic "..." --bullet "..." --source https://...\` proposes for the wiki what others should know, with what shows it. A person reviews it.
- \`svc agent list\` shows the other agents and what each is for. \`svc task assign current --assignee @handle\` hands your task over, \`svc task create --title "..." --assignee @handle\` gives somebody new work.
- \`svc wiki list --q WORDS\` finds pages of the workspace's wiki, \`svc wiki get PAGE --out -\` prints one. \`svc wiki create --title "..." --body-file FILE\` writes a new page, \`svc wiki update PAGE --body-file FILE --base REVISION\` the next text of one that you read; cite with links where they belong, not by numbers.
- \`svc task transition current --status done\` finishes your task, or \`--status in_review\` when a person should look at it first.

\`svc --help\` lists the rest.`
