{{- define "stayer.name" -}}
{{- default "stayer" .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* Labels of everything; call with (dict "root" $ "component" "operator"). */}}
{{- define "stayer.labels" -}}
{{ include "stayer.selector" . }}
app.kubernetes.io/instance: {{ .root.Release.Name | trunc 63 }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | trunc 63 }}
{{- end -}}

{{/* What never changes: selectors, and the peers that runs' NetworkPolicies name. */}}
{{- define "stayer.selector" -}}
app.kubernetes.io/name: stayer
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Image reference; call with (dict "root" $ "image" .Values.images.operator). */}}
{{- define "stayer.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "stayer.s3Secret" -}}
{{- if .Values.s3.existingSecret -}}
{{ .Values.s3.existingSecret }}
{{- else if .Values.s3.accessKeyId -}}
{{ include "stayer.name" . }}-s3
{{- end -}}
{{- end -}}

{{/* Environment of operator and relay: the object store. */}}
{{- define "stayer.s3Env" -}}
- name: STAYER_S3_ENDPOINT
  value: {{ .Values.s3.endpoint | quote }}
- name: STAYER_S3_BUCKET
  value: {{ .Values.s3.bucket | quote }}
- name: STAYER_S3_REGION
  value: {{ .Values.s3.region | quote }}
- name: STAYER_S3_PATH_STYLE
  value: {{ .Values.s3.pathStyle | quote }}
{{- with .Values.s3.prefix }}
- name: STAYER_S3_PREFIX
  value: {{ . | quote }}
{{- end }}
- name: STAYER_S3_SSE
  value: {{ .Values.s3.serverSideEncryption | quote }}
{{- with .Values.s3.kmsKey }}
- name: STAYER_S3_SSE_KMS_KEY
  value: {{ . | quote }}
{{- end }}
{{- if .Values.s3.caConfigMap }}
- name: STAYER_S3_CA
  value: /etc/stayer/s3/ca.crt
{{- end }}
{{- with include "stayer.s3Secret" . }}
- name: AWS_ACCESS_KEY_ID
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: AWS_ACCESS_KEY_ID
- name: AWS_SECRET_ACCESS_KEY
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: AWS_SECRET_ACCESS_KEY
{{- end }}
{{- end -}}

{{- define "stayer.s3Mounts" -}}
- name: tmp
  mountPath: /tmp
{{- if .Values.s3.caConfigMap }}
- name: s3-ca
  mountPath: /etc/stayer/s3
  readOnly: true
{{- end }}
{{- end -}}

{{- define "stayer.s3Volumes" -}}
- name: tmp
  emptyDir:
    sizeLimit: 256Mi
{{- if .Values.s3.caConfigMap }}
- name: s3-ca
  configMap:
    name: {{ .Values.s3.caConfigMap }}
{{- end }}
{{- end -}}

{{- define "stayer.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "stayer.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Annotations of a pod that is scraped; call with (dict "root" $ "port" 9090 "more" map). */}}
{{- define "stayer.podAnnotations" -}}
{{- if .root.Values.metrics.scrapeAnnotations }}
prometheus.io/scrape: "true"
prometheus.io/port: {{ .port | quote }}
prometheus.io/path: /metrics
{{- end }}
{{- with .more }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Labels as a=b,c=d. */}}
{{- define "stayer.labelList" -}}
{{- $list := list -}}
{{- range $name, $value := . -}}
{{- $list = append $list (printf "%s=%s" $name $value) -}}
{{- end -}}
{{- join "," $list -}}
{{- end -}}
