{{- define "lake.deployment" -}}
{{- $component := .component -}}
{{- $values := .values -}}
{{- with .root -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "lake.name" . }}-{{ $component }}
  labels:
    {{- include "lake.labels" . | nindent 4 }}
    app.kubernetes.io/component: {{ $component }}
spec:
  # One is enough. Two by accident, as while an update rolls, do no harm: the journal and the Delta log let one of them win
  # each step. Recreate only saves the work that the other would do in vain.
  replicas: 1
  strategy: {type: Recreate}
  selector:
    matchLabels: {{- include "lake.selector" (dict "root" . "component" $component) | nindent 6 }}
  template:
    metadata:
      labels: {{- include "lake.selector" (dict "root" . "component" $component) | nindent 8 }}
      annotations:
        checksum/config: {{ toYaml .Values.config | sha256sum }}
        prometheus.io/scrape: "true"
        prometheus.io/port: {{ include "lake.port" (dict "root" . "component" $component "port" $.port) | quote }}
    spec:
      serviceAccountName: {{ include "lake.serviceAccount" . }}
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: {{ $values.terminationGracePeriodSeconds }}
      securityContext: {{- include "lake.podSecurity" . | nindent 8 }}
      {{- with .Values.imagePullSecrets }}
      imagePullSecrets: {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: {{ $component }}
          image: {{ include "lake.image" (dict "root" . "image" $values.image) }}
          imagePullPolicy: {{ $values.image.pullPolicy }}
          args: [-c, /etc/blizzard/pipeline.yaml, --log-format, json]
          {{- with .Values.envFrom }}
          envFrom: {{- toYaml . | nindent 12 }}
          {{- end }}
          securityContext: {{- include "lake.containerSecurity" . | nindent 12 }}
          ports:
            - {name: metrics, containerPort: {{ include "lake.port" (dict "root" . "component" $component "port" $.port) }}}
          # Whether all is well. Not whether it lives: a batch may run for hours without a sign, and a restart mends nothing.
          readinessProbe:
            httpGet: {path: /health, port: metrics}
            initialDelaySeconds: 10
            periodSeconds: 30
            timeoutSeconds: 5
          # The page itself answers as long as the process does.
          livenessProbe:
            tcpSocket: {port: metrics}
            initialDelaySeconds: 60
            periodSeconds: 60
            failureThreshold: 5
          resources: {{- toYaml $values.resources | nindent 12 }}
          volumeMounts: {{- include "lake.mounts" . | nindent 12 }}
      volumes: {{- include "lake.volumes" (dict "root" . "scratch" $values.scratch) | nindent 8 }}
      {{- with .Values.nodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.tolerations }}
      tolerations: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.affinity }}
      affinity: {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end -}}
{{- end -}}
