{{- define "lake.name" -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "lake.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "lake.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "lake.image" -}}
{{- printf "%s:%s" .image.repository (.image.tag | default .root.Chart.AppVersion) -}}
{{- end -}}

{{- define "lake.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "lake.name" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "lake.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "lake.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "lake.volumes" -}}
- name: config
  configMap: {name: {{ include "lake.name" .root }}}
- name: scratch
  emptyDir: {sizeLimit: {{ .scratch.sizeLimit }}}
{{- with .root.Values.data.existingClaim }}
- name: data
  persistentVolumeClaim: {claimName: {{ . }}}
{{- end }}
{{- end -}}

{{- define "lake.mounts" -}}
- {name: config, mountPath: /etc/blizzard, readOnly: true}
- {name: scratch, mountPath: /tmp}
{{- if .Values.data.existingClaim }}
- {name: data, mountPath: {{ .Values.data.mountPath }}}
{{- end }}
{{- end -}}

{{- define "lake.port" -}}
{{- $metrics := .root.Values.config.metrics | default dict -}}
{{- $address := get $metrics (printf "%s_address" .component) | default (printf "0.0.0.0:%s" .port) -}}
{{- regexFind "[0-9]+$" $address -}}
{{- end -}}
