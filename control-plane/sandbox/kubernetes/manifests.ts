import { createHash } from 'node:crypto'
import { sandboxPlaces } from '../../../shared/runs/sandbox-places.ts'
import type { ContainerSpec } from '../engine.ts'

// The objects that stand for a sandbox in a cluster: a Job of one pod, the Secret that says who it is, and the claim of its volume.

export const labels = {
  server: 'svc-server',
  sandbox: 'svc-sandbox',
  workspace: 'svc-workspace',
  run: 'svc-run',
  /** Chosen by the policy that leaves sandboxes nothing but the broker (control-plane/deploy/kubernetes). */
  part: 'svc-part',
} as const
export const sandboxPart = 'sandbox'

/** A name that the cluster takes, for one that has capitals and underscores: always the same. */
export const objectName = (name: string): string =>
  isObjectName.test(name) ? name : `svc-${createHash('sha256').update(name).digest('hex').slice(0, 24)}`
const isObjectName = /^svc-[0-9a-f]{24}$/

const account = 1000
/** A Job that nobody removes ends, and goes, by itself. */
const longestSeconds = 24 * 3_600
const leftSeconds = 3_600

const labelsOf = (spec: ContainerSpec) => ({
  'app.kubernetes.io/name': 'svc-sandbox',
  [labels.part]: sandboxPart,
  [labels.server]: spec.serverId,
  [labels.sandbox]: spec.sandboxId,
  ...(spec.of !== null && { [labels.workspace]: spec.of.workspaceId, [labels.run]: spec.of.runId }),
})

/** The annotation with the name by which the server knows an object. */
export const nameAnnotation = 'svc-name'

const metadataOf = (spec: ContainerSpec, name = spec.name) => ({
  name: objectName(name),
  labels: labelsOf(spec),
  annotations: { [nameAnnotation]: name },
})

export function secretOf(spec: ContainerSpec) {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: metadataOf(spec),
    type: 'Opaque',
    data: { [sandboxPlaces.identity]: Buffer.from(JSON.stringify(spec.identity)).toString('base64') },
  }
}

/** `storageClass`: null: the cluster's usual one. */
export function claimOf(spec: ContainerSpec, { storageClass }: { storageClass: string | null }) {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: metadataOf(spec, spec.volume),
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: String(spec.size.diskBytes) } },
      ...(storageClass !== null && { storageClassName: storageClass }),
    },
  }
}

/** Describes the job. This function and the policy of the network say what a sandbox may do. The job is suspended until it is started. */
export function jobOf(spec: ContainerSpec) {
  const name = objectName(spec.name)
  const limits = { memory: String(spec.size.memoryBytes), cpu: String(spec.size.cpus) }
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: metadataOf(spec),
    spec: {
      suspend: true,
      parallelism: 1,
      completions: 1,
      backoffLimit: 0,
      activeDeadlineSeconds: longestSeconds,
      ttlSecondsAfterFinished: leftSeconds,
      template: {
        metadata: { labels: labelsOf(spec) },
        spec: {
          restartPolicy: 'Never',
          hostname: 'sandbox',
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          hostNetwork: false,
          hostPID: false,
          hostIPC: false,
          shareProcessNamespace: false,
          // The pod has nobody to ask: the broker looks names up.
          dnsPolicy: 'None',
          dnsConfig: { nameservers: ['127.0.0.1'] },
          terminationGracePeriodSeconds: 30,
          ...(spec.runtime !== null && { runtimeClassName: spec.runtime }),
          securityContext: {
            runAsUser: account,
            runAsGroup: account,
            runAsNonRoot: true,
            fsGroup: account,
            fsGroupChangePolicy: 'OnRootMismatch',
            seccompProfile: { type: 'RuntimeDefault' },
          },
          containers: [
            {
              name: 'sandbox',
              image: spec.image,
              workingDir: sandboxPlaces.work,
              resources: { limits, requests: limits },
              securityContext: {
                allowPrivilegeEscalation: false,
                privileged: false,
                readOnlyRootFilesystem: true,
                capabilities: { drop: ['ALL'] },
              },
              volumeMounts: [
                { name: 'work', mountPath: sandboxPlaces.work },
                { name: 'identity', mountPath: sandboxPlaces.broker, readOnly: true },
                { name: 'tmp', mountPath: '/tmp' },
              ],
            },
          ],
          volumes: [
            { name: 'work', persistentVolumeClaim: { claimName: objectName(spec.volume) } },
            { name: 'identity', secret: { secretName: name, defaultMode: 0o440 } },
            { name: 'tmp', emptyDir: { medium: 'Memory', sizeLimit: '256Mi' } },
          ],
        },
      },
    },
  }
}
