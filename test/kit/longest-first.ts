import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Projects one after another, since a worker serves one of them; those with the longest files first. */
const projects = ['process', 'replicas', 'fast']
/**
 * Files that take longest begin first, so that no worker is left with one of them at the end. Those that keep processors busy,
 * as real harnesses do, and those that wait stand in turn.
 */
const longest = [
  'test/e2e/harness-all.test.ts',
  'test/skew/skew.test.ts',
  'test/fault/sleep.test.ts',
  'test/e2e/sign-in.test.ts',
  'test/fault/cuts.test.ts',
  'test/e2e/workflow-command-steps.test.ts',
  'test/process/service/systemd.test.ts',
  'test/process/checkout/update.test.ts',
  'test/fault/automations-day.test.ts',
  'test/process/checkout/start.test.ts',
  'test/process/run-host/ending.test.ts',
  'test/fault/workflows.test.ts',
  'test/e2e/story.test.ts',
  'test/cli/device.test.ts',
  'test/fault/daemon-death.test.ts',
  'test/api/contract/documents-routes.test.ts',
  'test/api/contract/private-file.test.ts',
  'test/api/contract/fuzz.test.ts',
  'test/api/resources/tasks-wakes.test.ts',
  'test/api/resources/tasks-transitions.test.ts',
  'shared/lib/redact.test.ts',
  'test/api/contract/strangers.test.ts',
]

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId, project }: TestSpecification) => {
      const at = longest.findIndex((name) => moduleId.endsWith(name))
      return projects.indexOf(project.name) * (longest.length + 1) + (at < 0 ? longest.length : at)
    }
    return (await super.sort(files)).toSorted((a, b) => place(a) - place(b))
  }
}
