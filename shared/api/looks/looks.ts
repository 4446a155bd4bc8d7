import { agentLooks } from './agents.ts'
import type { Looks } from './look.ts'
import { placeLooks } from './places.ts'
import { runLooks } from './runs.ts'
import { skillLooks } from './skills.ts'
import { talkLooks } from './talk.ts'
import { taskLooks } from './tasks.ts'
import { thingLooks } from './things.ts'
import { webhookLooks } from './webhooks.ts'
import { wikiLooks } from './wiki.ts'
import { workLooks } from './work.ts'

/**
 * The looks of all records by the name of their schema, or by the id of the route whose reply has none. `command-table.json` says which one
 * a command's reply has.
 */
export const looks: Looks = {
  ...agentLooks,
  ...runLooks,
  ...taskLooks,
  ...talkLooks,
  ...workLooks,
  ...thingLooks,
  ...placeLooks,
  ...skillLooks,
  ...webhookLooks,
  ...wikiLooks,
}
