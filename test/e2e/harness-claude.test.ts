import { claudeDriver } from './harness/drivers.ts'
import { longCases } from './harness/long-cases.ts'
import { shortCases } from './harness/short-cases.ts'
import { skillCases } from './harness/skill-cases.ts'
import { stageFor } from './harness/stage.ts'

// harness-all.test.ts has the MCP servers of a workspace.
const stage = stageFor(claudeDriver)
shortCases(stage, claudeDriver)
longCases(stage, claudeDriver)
skillCases(stage)
