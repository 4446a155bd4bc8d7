import { expect } from 'vitest'
import { findLeftByRun, listLeftByRuns } from '../../control-plane/resources/approvals/run-ended-store.ts'
import { insertApproval } from '../../control-plane/resources/approvals/store.ts'
import { insertQuestion } from '../../control-plane/resources/questions/store.ts'
import { onBoth } from '../kit/database.ts'
import { approvalRow, questionRow } from './hold-rows.ts'
import { seedAgent, seedRun, seedWorkspace } from './seed.ts'

onBoth('what a run leaves open is known at its end: what it asked, and budgets', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const agent = await seedAgent(root, workspaceId)
  const [asked, wondered, quiet] = [await seedRun(root, agent), await seedRun(root, agent), await seedRun(root, agent)]
  const approval = approvalRow(workspaceId, { agentRef: agent.id, runId: asked.id })
  await insertApproval(root, approval)
  await insertQuestion(root, questionRow(workspaceId, { agentRef: agent.id, runId: wondered.id }))
  const open = { hasOpenHolds: true, hasBudgets: false }
  expect(await findLeftByRun(root, asked.id)).toEqual(open)
  expect(await findLeftByRun(root, wondered.id)).toEqual(open)
  expect(await findLeftByRun(root, quiet.id)).toEqual({ hasOpenHolds: false, hasBudgets: false })
  const ids = [asked.id, wondered.id, quiet.id]
  expect(await listLeftByRuns(root, ids)).toEqual(
    new Map([
      [asked.id, open],
      [wondered.id, open],
      [quiet.id, { hasOpenHolds: false, hasBudgets: false }],
    ]),
  )
  await root('approvals').where({ id: approval.id }).update({ status: 'rejected' })
  expect(await findLeftByRun(root, asked.id)).toEqual({ hasOpenHolds: false, hasBudgets: false })

  const limited = await seedAgent(root, workspaceId, { monthlyBudgetCents: 0 })
  expect(await findLeftByRun(root, (await seedRun(root, limited)).id)).toMatchObject({ hasBudgets: true })
  expect(await findLeftByRun(root, quiet.id)).toMatchObject({ hasBudgets: false })
  await root('workspaces').where({ id: workspaceId }).update({ monthly_budget_cents: 100 })
  expect(await findLeftByRun(root, quiet.id)).toMatchObject({ hasBudgets: true })
  await root('workspaces').where({ id: workspaceId }).update({ monthly_budget_cents: null })
  await insertApproval(root, approvalRow(workspaceId, { trigger: 'budget_breach', raiseKey: `budget:${agent.id}` }))
  expect(await findLeftByRun(root, quiet.id)).toEqual({ hasOpenHolds: false, hasBudgets: true })
})
