import { idFrom, type PersonRef, type PersonUuid, type RunId, type TaskId } from '../../shared/lib/ids.ts'
import type { Db } from '../db/open.ts'
import { findAgent } from '../resources/agents/store.ts'
import { findApproval } from '../resources/approvals/store.ts'
import { findUserByPublicId } from '../resources/members/store.ts'
import { findQuestion } from '../resources/questions/store.ts'
import { findRun } from '../resources/runs/store.ts'
import { listPeopleOfTask } from '../resources/tasks/people.ts'
import type { WebhookEventRow } from '../resources/webhooks/event-store.ts'

/** Returns the people whose affair an event is: who asked for it, made it, gave it to somebody, watches it, or is to decide. */
export async function concernedIn(
  db: Db,
  { type, workspaceId, subjectId }: Pick<WebhookEventRow, 'type' | 'workspaceId' | 'subjectId'>,
): Promise<Set<PersonUuid>> {
  const people = new People(db)
  switch (type.split('.')[0]) {
    case 'run':
      await people.addOfRun(idFrom(subjectId))
      break
    case 'task':
      await people.addOfTask(idFrom(subjectId))
      break
    case 'approval': {
      const approval = await findApproval(db, workspaceId, idFrom(subjectId))
      if (approval === null) break
      if (approval.assignedRef !== null) await people.addByRef(approval.assignedRef)
      else if (approval.runId !== null) await people.addOfRun(approval.runId)
      break
    }
    case 'question': {
      const question = await findQuestion(db, workspaceId, idFrom(subjectId))
      if (question === null) break
      await people.addOfRun(question.runId)
      if (question.taskId !== null) await people.addOfTask(question.taskId)
      break
    }
    default:
      // An event of a later release is nobody's.
      break
  }
  return people.found
}

class People {
  readonly found = new Set<PersonUuid>()
  private readonly db: Db

  constructor(db: Db) {
    this.db = db
  }

  async addByRef(ref: PersonRef): Promise<void> {
    const user = await findUserByPublicId(this.db, ref)
    if (user !== null) this.found.add(user.id)
  }

  /** Whoever asked for it, or else the owner of its agent, and those of its task. */
  async addOfRun(id: RunId): Promise<void> {
    const run = await findRun(this.db, id)
    if (run === null) return
    const asker = run.causedByUuid ?? (await findAgent(this.db, run.agentRef))?.ownerUuid ?? null
    if (asker !== null) this.found.add(asker)
    if (run.taskId !== null) await this.addOfTask(run.taskId)
  }

  async addOfTask(id: TaskId): Promise<void> {
    for (const person of await listPeopleOfTask(this.db, id)) this.found.add(person)
  }
}
