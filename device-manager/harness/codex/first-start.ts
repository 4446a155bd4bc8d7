import type { FirstStart, ProbeTalk } from '../adapter.ts'
import { jsonLine } from '../parts/json-lines.ts'
import { codexRequestIds, initializeLines } from './lines.ts'
import { asArgs, silent } from './settings.ts'
import { codexReply, threadResult } from './wire.ts'

/** Else codex connects to its maker as soon as there is a thread. Nobody listens here. */
const nobody = ['model_provider="nobody"', 'model_providers.nobody={name="nobody",base_url="http://127.0.0.1:1"}']

/**
 * In a home that is new to it codex makes its databases, with some eighty syncs of the disk, and reads all of the person's sessions
 * into them: eleven seconds of 5,000. In databases that a start without any session left, that counts as done; a session that
 * is gone on with is found by its name.
 */
export const codexFirstStart: FirstStart = {
  edition: 2,
  args: ['app-server', ...asArgs([...silent, 'features.plugins=false', ...nobody])],
  talk: threadThatIsDeleted,
  env: (home) => ({ CODEX_HOME: home }),
  keeps: (name) => /\.sqlite(-wal)?$/.test(name),
}

/**
 * The database of what was said is made when a thread gets its first item: so one is begun, given an item and deleted. A codex
 * that refuses to begin it or to take the item leaves none, and runs make that database themselves.
 */
function threadThatIsDeleted(): ProbeTalk {
  const about = { threadId: '' }
  let awaited: number = codexRequestIds.thread
  const ask = (id: number, method: string, params: object) => {
    awaited = id
    return jsonLine({ id, method, params })
  }
  return {
    opening: initializeLines() + ask(codexRequestIds.thread, 'thread/start', {}),
    answer(said) {
      const parsed = codexReply.safeParse(said)
      // An answer that comes again is none.
      if (!parsed.success || parsed.data.id !== awaited) return ''
      const { result, error } = parsed.data
      if (awaited === codexRequestIds.deletion) {
        if (error !== undefined) throw new Error(`codex did not delete the thread: ${error.message}`)
        return null
      }
      if (error !== undefined) return null
      if (awaited === codexRequestIds.item) return ask(codexRequestIds.deletion, 'thread/delete', about)
      about.threadId = threadResult.parse(result).thread.id
      return ask(codexRequestIds.item, 'thread/inject_items', { ...about, items: [item] })
    },
  }
}

const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text: '.' }] }
