import { idFrom } from '../../shared/lib/ids.ts'
import type { ContainerSpec } from '../../control-plane/sandbox/engine.ts'
import { sandboxIdentity } from '../../shared/device/sandbox.ts'

const identity = sandboxIdentity.parse({
  publicId: 'dvc_5dF9gJ3kZxC7vB1n',
  deviceId: '17fa8608-948b-4012-94f3-331b846a0c1d',
  displayName: 'Sandbox',
  token: 't',
  size: 'small',
})
/** What an engine is told of a sandbox. */
export const aSpec: ContainerSpec = {
  name: 'svc-run_3nB7cW1yHsD5jK9q-1',
  image: `images.example.com/svc-sandbox@sha256:${'ab'.repeat(32)}`,
  serverId: '0123456789abcdef0123456789abcdef',
  sandboxId: idFrom('sbx_4kR8nV2mQx7T1wZ9'),
  of: { workspaceId: idFrom('17fa8608-948b-4012-94f3-331b846a0c1d'), runId: idFrom('run_3nB7cW1yHsD5jK9q') },
  size: { memoryBytes: 4 * 1024 ** 3, cpus: 1.5, pids: 1_024, diskBytes: 20 * 1024 ** 3 },
  volume: 'svc-run_3nB7cW1yHsD5jK9q-1',
  brokerFolder: 'cluster',
  identity,
  runtime: 'gvisor',
}
